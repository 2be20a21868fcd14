import { createHmac, createSecretKey } from 'node:crypto';
import { Webhook } from 'standardwebhooks';

/**
 * From this size on, Node's own HMAC checks a body first. The provider's library is JavaScript and takes over
 * ten milliseconds for 1 MiB: strangers could stop the receiver with that.
 */
const triedFirstBytesMin = 16 * 1024;

export interface SigningKey {
  /** Returns the provider's signature, with its version (service.md 5.3, 5.4), for a time in Unix seconds. */
  sign(id: string, timestamp: number, body: string): string;
  /** Whether this key may have signed the body; always true for a small body. Costs one HMAC at most. */
  maySign(id: string, timestamp: number, body: Buffer, matches: (signature: string) => boolean): boolean;
}

export function createSigningKey(bytes: Buffer): SigningKey {
  const webhook = new Webhook(bytes.toString('base64'));
  // Made once: an HMAC keyed with bytes costs five times as much.
  const key = createSecretKey(bytes);
  return {
    sign: (id, timestamp, body) => webhook.sign(id, new Date(timestamp * 1_000), body),
    maySign(id, timestamp, body, matches) {
      if (body.length < triedFirstBytesMin) return true;
      const hmac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
      return matches(`v1,${hmac.digest('base64')}`);
    },
  };
}

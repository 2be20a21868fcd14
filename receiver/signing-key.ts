import { createHmac, createSecretKey } from 'node:crypto';
import { Webhook } from 'standardwebhooks';

/**
 * From so many bytes on a body is tried with Node's own HMAC before the delivery provider's library is asked: that one is
 * JavaScript and takes ten and more milliseconds for 1 MiB, with which strangers would stop the receiver.
 */
const triedFirstBytesMin = 16 * 1024;

/** The key of a signing secret. */
export interface SigningKey {
  /**
   * The signature of a delivery by the delivery provider's library, with its version (seed 5.3, 5.4).
   * @param timestamp Unix seconds
   */
  sign(id: string, timestamp: number, body: string): string;
  /** Whether the body may be signed by this key; true of a small one, without a look. Costs no more than an HMAC. */
  maySign(id: string, timestamp: number, body: Buffer, matches: (signature: string) => boolean): boolean;
}

/** Makes a key ready to sign with. */
export function createSigningKey(bytes: Buffer): SigningKey {
  const webhook = new Webhook(bytes.toString('base64'));
  // Made once: from bytes, each HMAC would cost five times as much.
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

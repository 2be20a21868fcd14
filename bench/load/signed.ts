import { createHmac, randomBytes } from 'node:crypto';

export const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** An event to be sent: its id and the body that is signed. */
export interface Outgoing {
  readonly id: string;
  readonly body: string;
}

/** Makes the bytes of a delivery's request, signed now (service.md 5.3). */
export function signedRequest(secret: string, { id, body }: Outgoing): Buffer {
  const timestamp = Math.floor(Date.now() / 1000);
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  const head = [
    'POST /webhooks HTTP/1.1',
    'host: 127.0.0.1',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    `webhook-id: ${id}`,
    `webhook-timestamp: ${timestamp}`,
    `webhook-signature: v1,${signature}`,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
}

import { createHmac } from 'node:crypto';

/** The secret, message and signature that every library of the signature rules publishes. */
export const golden = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: '1614265330',
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
} as const;

/** The present time of the receivers of these tests, Unix time in milliseconds. */
export const frozenNow = Number(golden.timestamp) * 1_000;

export const keyOf = (secret: string): Buffer => Buffer.from(secret.slice('whsec_'.length), 'base64');

export const secretOf = (key: Buffer): string => `whsec_${key.toString('base64')}`;

/** A second and a third secret, with other keys than the golden secret. */
export const otherSecret = secretOf(Buffer.alloc(24, 7));
export const oldSecret = secretOf(Buffer.alloc(32, 9));

export interface Message {
  id?: string;
  timestamp?: string;
  body?: string | Buffer;
  key?: Buffer | string;
}

/** Signs the bytes by HMAC-SHA256, independently of the library with which the receiver verifies. */
export function macOf({
  id = golden.id,
  timestamp = golden.timestamp,
  body = golden.body,
  key = keyOf(golden.secret),
}: Message): Buffer {
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
}

export const signatureOf = (message: Message): string => `v1,${macOf(message).toString('base64')}`;

/** Makes correctly signed headers of a delivery, for any id and timestamp. */
export function signedHeaders(message: Message = {}, prefix = 'webhook'): [string, string][] {
  return [
    [`${prefix}-id`, message.id ?? golden.id],
    [`${prefix}-timestamp`, message.timestamp ?? golden.timestamp],
    [`${prefix}-signature`, signatureOf(message)],
  ];
}

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Payload, PayloadCodec } from '@temporalio/common';
import proto from '@temporalio/proto';

const PayloadMessage = proto.temporal.api.common.v1.Payload;

/** A key of 32 bytes, and the name under which payloads say that it encrypted them. */
export interface CodecKey {
  readonly id: string;
  readonly key: Buffer;
}

const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
const encrypted = 'binary/encrypted';

/**
 * Encrypts what Temporal is given with AES-256-GCM under the first key, and decrypts what any of the keys encrypted;
 * what was never encrypted passes. Without keys nothing is encrypted. The form is that of Temporal's own samples:
 * nonce, ciphertext and tag of the whole payload, with the key's id beside it, so that their codec servers read it.
 */
export function payloadCodec(keys: readonly CodecKey[]): PayloadCodec {
  const [first] = keys;
  const byId = new Map(keys.map((known) => [known.id, known]));
  return {
    encode: async (payloads) => (first === undefined ? payloads : payloads.map((one) => encrypt(one, first))),
    decode: async (payloads) => payloads.map((one) => decrypt(one, byId)),
  };
}

function encrypt(payload: Payload, { id, key }: CodecKey): Payload {
  const nonce = randomBytes(nonceBytes);
  const cipherText = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes });
  const data = Buffer.concat([
    nonce,
    cipherText.update(PayloadMessage.encode(payload).finish()),
    cipherText.final(),
    cipherText.getAuthTag(),
  ]);
  return { metadata: { encoding: Buffer.from(encrypted), 'encryption-key-id': Buffer.from(id) }, data };
}

function decrypt(payload: Payload, keys: ReadonlyMap<string, CodecKey>): Payload {
  if (textOf(payload.metadata?.encoding) !== encrypted) return payload;
  const id = textOf(payload.metadata?.['encryption-key-id']);
  const known = keys.get(id);
  if (known === undefined) {
    throw new Error(
      `a payload in Temporal was encrypted under the key "${id}": add it to TEMPORAL_CODEC_KEYS`,
    );
  }
  const data = Buffer.from(payload.data ?? []);
  try {
    const decipher = createDecipheriv(cipher, known.key, data.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    });
    decipher.setAuthTag(data.subarray(-tagBytes));
    const plain = [decipher.update(data.subarray(nonceBytes, -tagBytes)), decipher.final()];
    return PayloadMessage.decode(Buffer.concat(plain));
  } catch (error) {
    const what = `a payload in Temporal does not decrypt with the key "${id}" of TEMPORAL_CODEC_KEYS`;
    throw new Error(`${what}: it is another key of that name, or the payload was changed`, { cause: error });
  }
}

const textOf = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString('utf8');

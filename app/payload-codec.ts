import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Payload, PayloadCodec, SerializationContext } from '@temporalio/common';
import proto from '@temporalio/proto';
import { Failure, type FailureCode } from '../contract/failures.ts';

const PayloadMessage = proto.temporal.api.common.v1.Payload;

/** A key of 32 bytes, and the name under which payloads say that it encrypted them. */
export interface CodecKey {
  readonly id: string;
  readonly key: Buffer;
}

/** What becomes of a payload that is not encrypted, where there are keys. */
export type Plaintext = 'refused' | 'accepted';

const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
const encrypted = 'binary/encrypted';
/** Within the ciphertext: the key and the place that the payload was encrypted for. */
const boundTo = 'metersync-bound-to';

/**
 * Encrypts what Temporal is given with AES-256-GCM under the first key, and decrypts what any of the keys encrypted.
 * What no key of ours encrypted, or encrypted for another workflow or activity, is refused: whoever reaches Temporal
 * can neither make a payload nor move one. `accepted` takes what is bare, for histories from before the keys.
 * Without keys nothing is encrypted, and what is bare passes. The form is that of Temporal's own samples: nonce,
 * ciphertext and tag of the whole payload, with the key's id beside it, so that their codec servers read it.
 */
export function payloadCodec(keys: readonly CodecKey[], plaintext: Plaintext = 'refused'): PayloadCodec {
  const [first] = keys;
  const byId = new Map(keys.map((known) => [known.id, known]));
  const takesBare = first === undefined || plaintext === 'accepted';
  return {
    encode: async (payloads, context) =>
      first === undefined ? payloads : payloads.map((one) => encrypt(one, first, context)),
    decode: async (payloads, context) => payloads.map((one) => decode(one, { byId, takesBare, context })),
  };
}

interface Decoding {
  readonly byId: ReadonlyMap<string, CodecKey>;
  readonly takesBare: boolean;
  readonly context: SerializationContext | undefined;
}

function decode(payload: Payload, { byId, takesBare, context }: Decoding): Payload {
  if (textOf(payload.metadata?.encoding) !== encrypted) {
    if (takesBare) return payload;
    throw refused(context, 'is not encrypted, and TEMPORAL_CODEC_KEYS is set');
  }
  const id = textOf(payload.metadata?.['encryption-key-id']);
  const known = byId.get(id);
  if (known === undefined) {
    throw refused(context, `was encrypted under the key "${id}": add it to TEMPORAL_CODEC_KEYS`);
  }
  const plain = decrypt(payload, known, context);
  const { [boundTo]: binding, ...metadata } = plain.metadata ?? {};
  if (binding === undefined && takesBare) return plain;
  if (!isBoundTo(textOf(binding), known, context)) {
    throw refused(
      context,
      'was encrypted for another workflow or activity, or under another name of its key',
    );
  }
  return { ...plain, metadata };
}

function encrypt(payload: Payload, known: CodecKey, context: SerializationContext | undefined): Payload {
  const nonce = randomBytes(nonceBytes);
  const cipherText = createCipheriv(cipher, known.key, nonce, { authTagLength: tagBytes });
  const bound = { ...payload.metadata, [boundTo]: Buffer.from(bindingOf(known, context)) };
  const data = Buffer.concat([
    nonce,
    cipherText.update(PayloadMessage.encode({ ...payload, metadata: bound }).finish()),
    cipherText.final(),
    cipherText.getAuthTag(),
  ]);
  return { metadata: { encoding: Buffer.from(encrypted), 'encryption-key-id': Buffer.from(known.id) }, data };
}

function decrypt(
  payload: Payload,
  { id, key }: CodecKey,
  context: SerializationContext | undefined,
): Payload {
  const data = Buffer.from(payload.data ?? []);
  try {
    const decipher = createDecipheriv(cipher, key, data.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    });
    decipher.setAuthTag(data.subarray(-tagBytes));
    const plain = [decipher.update(data.subarray(nonceBytes, -tagBytes)), decipher.final()];
    return PayloadMessage.decode(Buffer.concat(plain));
  } catch (error) {
    const what = `does not decrypt with the key "${id}" of TEMPORAL_CODEC_KEYS`;
    throw refused(context, `${what}: it is another key of that name, or the payload was changed`, error);
  }
}

/** Not the namespace: a history that is replayed, or restored into another one, has to be readable. */
function bindingOf({ id }: CodecKey, context: SerializationContext | undefined): string {
  return JSON.stringify([id, ...placeOf(context)]);
}

/** What Temporal adds to the id of each workflow that a schedule starts. */
const scheduledAt = /-\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/;

/** The workflows of one schedule are one place: Temporal hands each the result of the one before. */
function placeOf(context: SerializationContext | undefined): readonly string[] {
  if (context === undefined) return [];
  const { type } = context;
  const workflowId = (context.workflowId ?? '').replace(scheduledAt, '');
  return type === 'workflow' ? [type, workflowId] : [type, workflowId, context.activityId ?? ''];
}

/** Where Temporal's library does not say what a payload is for, the key alone is compared. */
function isBoundTo(binding: string, known: CodecKey, context: SerializationContext | undefined): boolean {
  if (context !== undefined) return binding === bindingOf(known, context);
  return binding.startsWith(`[${JSON.stringify(known.id)}`);
}

function refused(context: SerializationContext | undefined, why: string, cause?: unknown): Failure {
  const [type, workflowId] = placeOf(context);
  const whose =
    workflowId === undefined ? '' : ` for ${type === 'activity' ? 'an activity of ' : ''}${workflowId}`;
  const code: FailureCode = 'PAYLOAD_REFUSED';
  // With the code: of an error outside of workflows Temporal keeps the message alone.
  return new Failure(code, `${code}: a payload in Temporal${whose} ${why}`, { cause });
}

const textOf = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString('utf8');

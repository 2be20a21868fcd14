import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Payload, PayloadCodec, SerializationContext } from '@temporalio/common';
import proto from '@temporalio/proto';
import { Failure, type FailureCode } from '../../contract/failures.ts';
import { writePrivateFileOnce } from '../process/private-file.ts';

const PayloadMessage = proto.temporal.api.common.v1.Payload;

/** A key of 32 bytes, and the id by which payloads name it. */
export interface CodecKey {
  readonly id: string;
  readonly key: Buffer;
}

/** A key that Node has already read: reading a buffer for each payload would cost as much as encrypting. */
interface ReadyKey {
  readonly id: string;
  readonly key: KeyObject;
}

/** How to treat a payload that is not encrypted, if there are keys. */
export type Plaintext = 'refused' | 'accepted';

const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
const encrypted = 'binary/encrypted';
/** Metadata within the ciphertext: the key and the place for which the payload was encrypted. */
const boundTo = 'metersync-bound-to';

/**
 * Encrypts payloads for Temporal with AES-256-GCM and the first key, and decrypts payloads of any key.
 * Refuses payloads that none of the keys encrypted, or that belong to another workflow or activity, so others
 * who reach Temporal can neither create a payload nor move one. `accepted` plaintext passes, for histories
 * older than the keys; without keys nothing is encrypted. The format (nonce, ciphertext and tag of the whole
 * payload, and the key's id) is the format of Temporal's samples, so their codec servers can read it.
 */
export function payloadCodec(keys: readonly CodecKey[], plaintext: Plaintext = 'refused'): PayloadCodec {
  const ready = keys.map(({ id, key }): ReadyKey => ({ id, key: createSecretKey(key) }));
  const [first] = ready;
  const byId = new Map(ready.map((key) => [key.id, key]));
  const takesPlaintext = first === undefined || plaintext === 'accepted';
  return {
    encode: async (payloads, context) =>
      first === undefined ? payloads : payloads.map((payload) => encrypt(payload, first, context)),
    decode: async (payloads, context) =>
      payloads.map((payload) => decode(payload, { byId, takesPlaintext, context })),
  };
}

interface Decoding {
  readonly byId: ReadonlyMap<string, ReadyKey>;
  readonly takesPlaintext: boolean;
  readonly context: SerializationContext | undefined;
}

function decode(payload: Payload, { byId, takesPlaintext, context }: Decoding): Payload {
  if (textOf(payload.metadata?.encoding) !== encrypted) {
    if (takesPlaintext) return payload;
    throw refused(context, 'is not encrypted, and TEMPORAL_CODEC_KEYS is set');
  }
  const id = textOf(payload.metadata?.['encryption-key-id']);
  const key = byId.get(id);
  if (key === undefined) {
    throw refused(context, `was encrypted under the key "${id}": add it to TEMPORAL_CODEC_KEYS`);
  }
  const plain = decrypt(payload, key, context);
  const { [boundTo]: binding, ...metadata } = plain.metadata ?? {};
  if (binding === undefined && takesPlaintext) return plain;
  if (!isBoundTo(textOf(binding), key, context)) {
    throw refused(
      context,
      'was encrypted for another workflow or activity, or under another name of its key',
    );
  }
  return { ...plain, metadata };
}

function encrypt(payload: Payload, codecKey: ReadyKey, context: SerializationContext | undefined): Payload {
  const nonce = randomBytes(nonceBytes);
  const { id, key } = codecKey;
  const cipherText = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes });
  const bound = { ...payload.metadata, [boundTo]: Buffer.from(bindingOf(codecKey, context)) };
  const data = Buffer.concat([
    nonce,
    cipherText.update(PayloadMessage.encode({ ...payload, metadata: bound }).finish()),
    cipherText.final(),
    cipherText.getAuthTag(),
  ]);
  return { metadata: { encoding: Buffer.from(encrypted), 'encryption-key-id': Buffer.from(id) }, data };
}

function decrypt(
  payload: Payload,
  { id, key }: ReadyKey,
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
    throw refused(
      context,
      `${what}: the key has the same name but another value, or the payload was changed`,
      error,
    );
  }
}

/** Returns what a payload is bound to: not the namespace, because restored histories must be readable. */
function bindingOf({ id }: ReadyKey, context: SerializationContext | undefined): string {
  return JSON.stringify([id, ...placeOf(context)]);
}

/** The suffix that Temporal adds to the id of each workflow that a schedule starts. */
const scheduledAt = /-\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/;

/** Names the place of a payload: one for a whole schedule, whose workflows pass their results on. */
function placeOf(context: SerializationContext | undefined): readonly string[] {
  if (context === undefined) return [];
  const { type } = context;
  const workflowId = (context.workflowId ?? '').replace(scheduledAt, '');
  return type === 'workflow' ? [type, workflowId] : [type, workflowId, context.activityId ?? ''];
}

/** Compares only the key if Temporal's library gives no context for a payload. */
function isBoundTo(binding: string, key: ReadyKey, context: SerializationContext | undefined): boolean {
  if (context !== undefined) return binding === bindingOf(key, context);
  return binding.startsWith(`[${JSON.stringify(key.id)}`);
}

function refused(context: SerializationContext | undefined, why: string, cause?: unknown): Failure {
  const [type, workflowId] = placeOf(context);
  const whose =
    workflowId === undefined ? '' : ` for ${type === 'activity' ? 'an activity of ' : ''}${workflowId}`;
  const code: FailureCode = 'PAYLOAD_REFUSED';
  // The message repeats the code, because Temporal keeps only the message of errors outside of workflows.
  return new Failure(code, `${code}: a payload in Temporal${whose} ${why}`, { cause });
}

const textOf = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString('utf8');

const keyBytes = 32;

/**
 * Reads the key that encrypts the payloads of the embedded Temporal, or creates it: call it before the server
 * starts. Temporal's port accepts every user of the machine, who without the key can neither read nor forge
 * events. Returns undefined for data that is older than the keys and stays unencrypted.
 * @throws Error if the file does not contain a key
 */
export function embeddedCodecKey(dir: string): CodecKey | undefined {
  const file = join(dir, 'temporal-codec-key');
  const hasData = existsSync(join(dir, 'temporal.db'));
  if (!existsSync(file)) {
    if (hasData) return undefined;
    writePrivateFileOnce(file, `${randomBytes(keyBytes).toString('base64')}\n`);
  }
  const key = Buffer.from(readFileSync(file, 'utf8').trim(), 'base64');
  if (key.length !== keyBytes) {
    throw new Error(
      `${file} does not contain a key: restore it from a backup, or delete it together with temporal.db in the same folder`,
    );
  }
  return { id: 'embedded', key };
}

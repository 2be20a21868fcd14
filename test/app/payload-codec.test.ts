import { randomBytes } from 'node:crypto';
import { defaultPayloadConverter, type Payload, type SerializationContext } from '@temporalio/common';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type CodecKey, payloadCodec } from '../../app/temporal/payload-codec.ts';

const keyOf = (id: string): CodecKey => ({ id, key: randomBytes(32) });
const payloadOf = (value: unknown): Payload => defaultPayloadConverter.toPayload(value);
const plainOf = (payload: Payload | undefined): unknown =>
  payload === undefined ? undefined : defaultPayloadConverter.fromPayload(payload);

describe('the payload codec', () => {
  test('decrypts any payload to its bytes, and never encrypts to the same bytes twice', async () => {
    const codec = payloadCodec([keyOf('a')]);
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const [one = {}, two = {}] = await codec.encode([payloadOf(value), payloadOf(value)]);
        expect(Buffer.from(one.data ?? [])).not.toEqual(Buffer.from(two.data ?? []));
        const same = plainOf(payloadOf(value));
        expect((await codec.decode([one, two])).map(plainOf)).toEqual([same, same]);
      }),
    );
  });

  test('encrypts with the first key and decrypts with all keys', async () => {
    const [older, newer] = [keyOf('2026-01'), keyOf('2026-07')];
    const [before = {}] = await payloadCodec([older]).encode([payloadOf('before')]);
    const rotated = payloadCodec([newer, older]);
    const [after = {}] = await rotated.encode([payloadOf('after')]);
    expect(Buffer.from(after.metadata?.['encryption-key-id'] ?? []).toString()).toBe('2026-07');
    expect((await rotated.decode([before, after])).map(plainOf)).toEqual(['before', 'after']);
    expect(plainOf((await payloadCodec([newer]).decode([after]))[0])).toBe('after');
  });

  test('encrypts nothing without keys', async () => {
    const payload = payloadOf({ hello: 'world' });
    expect(await payloadCodec([]).encode([payload])).toEqual([payload]);
  });

  test('refuses plaintext if there are keys, unless it is configured to accept it', async () => {
    const bare = payloadOf('plain');
    await expect(payloadCodec([keyOf('a')]).decode([bare])).rejects.toMatchObject({
      code: 'PAYLOAD_REFUSED',
      message: expect.stringContaining('is not encrypted'),
    });
    expect((await payloadCodec([keyOf('a')], 'accepted').decode([bare])).map(plainOf)).toEqual(['plain']);
    expect((await payloadCodec([]).decode([bare])).map(plainOf)).toEqual(['plain']);
  });

  test('decrypts a payload only in the place it was encrypted for, in any namespace', async () => {
    const codec = payloadCodec([keyOf('a')]);
    const text = fc.constantFrom('', 'a', 'b', 'a","b', 'event/1', 'event/1/2');
    const place = fc.oneof(
      fc.record({ type: fc.constant('workflow' as const), workflowId: text }),
      fc.record({ type: fc.constant('activity' as const), workflowId: text, activityId: text }),
    );
    await fc.assert(
      fc.asyncProperty(place, place, fc.boolean(), async (made, read, isLocal) => {
        const of = (where: typeof made, namespace: string): SerializationContext =>
          where.type === 'workflow' ? { ...where, namespace } : { ...where, namespace, isLocal };
        const encoded = await codec.encode([payloadOf('group')], of(made, 'one'));
        const decoded = codec.decode(encoded, of(read, 'another'));
        if (JSON.stringify(made) === JSON.stringify(read)) {
          const [payload] = await decoded;
          expect(plainOf(payload)).toBe('group');
          expect(Object.keys(payload?.metadata ?? {})).toEqual(['encoding']);
        } else {
          await expect(decoded).rejects.toMatchObject({ code: 'PAYLOAD_REFUSED' });
        }
        expect((await codec.decode(encoded)).map(plainOf)).toEqual(['group']);
      }),
    );
  });

  test("lets runs of a schedule read each other's results, and not the results of another schedule", async () => {
    const codec = payloadCodec([keyOf('a')]);
    const of = (workflowId: string): SerializationContext => ({
      type: 'workflow',
      namespace: 'n',
      workflowId,
    });
    const result = await codec.encode([payloadOf('done')], of('nightly-2026-01-01T03:00:00Z'));
    expect((await codec.decode(result, of('nightly-2026-01-02T03:12:07Z'))).map(plainOf)).toEqual(['done']);
    for (const other of ['hourly-2026-01-02T03:00:00Z', 'nightly-2026', 'nightly-2026-01-02T03:00:00Z/1']) {
      await expect(codec.decode(result, of(other))).rejects.toMatchObject({ code: 'PAYLOAD_REFUSED' });
    }
  });

  test('decrypts a payload only under the id of its key, even if another id has the same key', async () => {
    const key = keyOf('a');
    const [secret = {}] = await payloadCodec([key]).encode([payloadOf('secret')]);
    const renamed = { ...secret, metadata: { ...secret.metadata, 'encryption-key-id': Buffer.from('b') } };
    for (const plaintext of ['refused', 'accepted'] as const) {
      await expect(payloadCodec([key, { ...key, id: 'b' }], plaintext).decode([renamed])).rejects.toThrow(
        /under another name of its key/,
      );
    }
  });

  test('names a missing or wrong key in the error', async () => {
    const [secret = {}] = await payloadCodec([keyOf('a')]).encode([payloadOf('secret')]);
    for (const codec of [payloadCodec([]), payloadCodec([keyOf('b')])]) {
      await expect(codec.decode([secret])).rejects.toThrow(/key "a": add it to TEMPORAL_CODEC_KEYS/);
    }
    await expect(payloadCodec([keyOf('a')]).decode([secret])).rejects.toThrow(
      /does not decrypt with the key "a" of TEMPORAL_CODEC_KEYS/,
    );
  });

  test('refuses a payload that was changed or cut anywhere', async () => {
    const codec = payloadCodec([keyOf('a')]);
    const [secret = {}] = await codec.encode([payloadOf('secret')]);
    const data = Buffer.from(secret.data ?? []);
    for (let at = 0; at < data.length; at++) {
      const changed = Buffer.from(data);
      changed[at] = (changed[at] ?? 0) ^ 1;
      for (const broken of [changed, data.subarray(0, at)]) {
        await expect(codec.decode([{ ...secret, data: broken }])).rejects.toThrow(/does not decrypt/);
      }
    }
  });
});

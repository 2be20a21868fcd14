import { randomBytes } from 'node:crypto';
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type CodecKey, payloadCodec } from '../../app/payload-codec.ts';

const keyOf = (id: string): CodecKey => ({ id, key: randomBytes(32) });
const payloadOf = (value: unknown): Payload => defaultPayloadConverter.toPayload(value);
const plainOf = (payload: Payload | undefined): unknown =>
  payload === undefined ? undefined : defaultPayloadConverter.fromPayload(payload);

describe('the payload codec', () => {
  test('gives back whatever it encrypted, and never the same bytes twice', async () => {
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

  test('keys rotate: the first encrypts, all decrypt, and what was never encrypted passes', async () => {
    const [older, newer] = [keyOf('2026-01'), keyOf('2026-07')];
    const [before = {}] = await payloadCodec([older]).encode([payloadOf('before')]);
    const rotated = payloadCodec([newer, older]);
    const [after = {}] = await rotated.encode([payloadOf('after')]);
    expect(Buffer.from(after.metadata?.['encryption-key-id'] ?? []).toString()).toBe('2026-07');
    const decoded = await rotated.decode([before, after, payloadOf('plain')]);
    expect(decoded.map(plainOf)).toEqual(['before', 'after', 'plain']);
    expect(plainOf((await payloadCodec([newer]).decode([after]))[0])).toBe('after');
  });

  test('without keys nothing is encrypted', async () => {
    const payload = payloadOf({ hello: 'world' });
    expect(await payloadCodec([]).encode([payload])).toEqual([payload]);
  });

  test('a key that is missing or another is told by its name', async () => {
    const [secret = {}] = await payloadCodec([keyOf('a')]).encode([payloadOf('secret')]);
    for (const codec of [payloadCodec([]), payloadCodec([keyOf('b')])]) {
      await expect(codec.decode([secret])).rejects.toThrow(/key "a": add it to TEMPORAL_CODEC_KEYS/);
    }
    await expect(payloadCodec([keyOf('a')]).decode([secret])).rejects.toThrow(
      /does not decrypt with the key "a" of TEMPORAL_CODEC_KEYS/,
    );
  });

  test('a payload that was changed or cut anywhere is refused', async () => {
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

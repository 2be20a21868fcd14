import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { layOutJson } from '../../sandbox/portal/payload.ts';

const enough = 1_000_000;

describe('JSON laid out for a reader', () => {
  test('is indented like JSON.stringify', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value: unknown = JSON.parse(text);
        expect(layOutJson(JSON.stringify(value), enough)).toBe(JSON.stringify(value, undefined, 2));
      }),
    );
  });

  test('keeps what parsing would lose: big numbers, repeated names, escapes', () => {
    const sent = String.raw`{"a":12345678901234567890,"a":1.0,"b":"\u003cscript\u003e \/"}`;
    expect(layOutJson(sent, enough)?.replaceAll(/\n *|(?<=:) /g, '')).toBe(sent);
  });

  test('is limited for a long text, a long word and endless brackets', () => {
    for (const text of [
      JSON.stringify(Array.from({ length: 200_000 }, (_, n) => n)),
      JSON.stringify('x'.repeat(1_000_000)),
      `${'['.repeat(400_000)}${']'.repeat(400_000)}`,
    ]) {
      expect(layOutJson(text, 10_000)?.length).toBeLessThan(25_000);
    }
  });

  test.each(['', '{', 'hello', '{"a":1} more', "{'a':1}"])('is undefined for %j', (text) => {
    expect(layOutJson(text, enough)).toBeUndefined();
  });
});

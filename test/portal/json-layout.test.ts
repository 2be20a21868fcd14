import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { layOutJson } from '../../sandbox/portal/json-layout.ts';

const enough = 1_000_000;
const laidOut = (text: string, lengthMax = enough) =>
  layOutJson(text, lengthMax)
    ?.pieces.map((piece) => piece.text)
    .join('');

describe('JSON laid out for a reader', () => {
  test('is indented like JSON.stringify', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value: unknown = JSON.parse(text);
        expect(laidOut(JSON.stringify(value))).toBe(JSON.stringify(value, undefined, 2));
      }),
    );
  });

  test('keeps what parsing would lose: big numbers, repeated names, escapes', () => {
    const sent = String.raw`{"a":12345678901234567890,"a":1.0,"b":"\u003cscript\u003e \/"}`;
    expect(laidOut(sent)?.replaceAll(/\n *|(?<=:) /g, '')).toBe(sent);
  });

  test('distinguishes names, strings, numbers and literals', () => {
    const kinds = layOutJson('{"name":"text","n":[1,true]}', enough)?.pieces.filter(
      ({ kind }) => kind !== 'space',
    );
    expect(kinds?.filter(({ kind }) => kind !== 'mark').map(({ kind, text }) => [kind, text])).toEqual([
      ['name', '"name"'],
      ['string', '"text"'],
      ['name', '"n"'],
      ['number', '1'],
      ['literal', 'true'],
    ]);
  });

  test('is limited for a long text, a long word and endless brackets', () => {
    for (const text of [
      JSON.stringify(Array.from({ length: 200_000 }, (_, n) => n)),
      JSON.stringify('x'.repeat(1_000_000)),
      `${'['.repeat(400_000)}${']'.repeat(400_000)}`,
    ]) {
      expect(laidOut(text, 10_000)?.length).toBeLessThan(25_000);
    }
  });

  test('is undefined for text that is not JSON', () => {
    for (const text of ['', '{', 'hello', '{"a":1} more', "{'a':1}"])
      expect(layOutJson(text, enough)).toBeUndefined();
  });
});

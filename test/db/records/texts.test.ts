import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { itemTexts } from '../../../db/records/page.ts';
import { holdable, holdableRecord } from '../../../db/records/unholdable.ts';
import { cases } from '../../support/cases.ts';
import { anyCharacter } from '../../support/text.ts';

const page = (body: string, itemsKey: string | null = 'items', joined = false) =>
  itemTexts({ body, itemsKey, joined });

describe('the text of each record of a page', () => {
  test('is exactly as the service wrote it: digits, escapes, spaces', () => {
    const body = ` {"total" : 3, "items" :[ {"a": 1.10, "b":"\\u0000\\ud800"} , "x]\\"}" ,-1e400\n] } `;
    expect(page(body)).toEqual(['{"a": 1.10, "b":"\\u0000\\ud800"}', '"x]\\"}"', '-1e400']);
  });

  test('is found under an escaped key, and under the last of several equal keys', () => {
    expect(page('{"items":[1],"it\\u0065ms":[2,3]}')).toEqual(['2', '3']);
    expect(page('{"nested":{"items":[1]},"items":[]}')).toEqual([]);
    expect(page('{"other":[1]}')).toEqual([]);
  });

  test('is found in a bare array, in one record, and in several bodies joined', () => {
    expect(page('[1, [2], {"items":[3]}]', null)).toEqual(['1', '[2]', '{"items":[3]}']);
    expect(page('{"id":1}', '')).toEqual(['{"id":1}']);
    expect(page('[{"id":1},{"id":2}]', '', true)).toEqual(['{"id":1}', '{"id":2}']);
    expect(page('[{"items":[1]},{"items":[]},{"items":[2]}]', 'items', true)).toEqual(['1', '2']);
    expect(page('[[1],[2,3]]', null, true)).toEqual(['1', '2', '3']);
  });

  test('is found next to strings of megabytes and thousands of brackets', () => {
    const long = JSON.stringify(`${'é"\\['.repeat(500_000)}`);
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    expect(page(`{"items":[${long},${deep}]}`)).toEqual([long, deep]);
  });

  test('parses to its record, for any records and indentation', () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue({ stringUnit: anyCharacter })),
        fc.jsonValue(),
        fc.nat(3),
        (records, other, indent) => {
          const body = JSON.stringify({ other, items: records, after: other }, null, indent);
          expect(page(body).map((text) => JSON.parse(text))).toEqual(JSON.parse(body).items);
        },
      ),
      { seed: 20_261_121, numRuns: cases(200, 500) },
    );
  });
});

/** Any unit of UTF-16, often a NUL or half of a surrogate pair. */
const unit = fc.oneof(
  fc.constantFrom('\0', '\ud800', '\udc00', '\ud83d', '\ude00', '\\', '"', 'u0000', 'a'),
  fc.nat(0xffff).map((code) => String.fromCharCode(code)),
);
const text = fc.string({ unit, maxLength: 5 });
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    text,
    fc.constantFrom(1, null, true),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(text, tie('value'), { maxKeys: 3 }),
  ),
}));

/** What JSON.parse reads, with each text as Postgres holds it. */
function held(given: unknown): unknown {
  if (typeof given === 'string') return holdable(given);
  if (typeof given !== 'object' || given === null) return given;
  if (Array.isArray(given)) return given.map(held);
  return Object.fromEntries(Object.entries(given).map(([name, of]) => [holdable(name), held(of)]));
}

/** Counts the texts and names that Postgres cannot hold. */
function unheld(given: unknown): number {
  if (typeof given === 'string') return Number(holdable(given) !== given);
  if (typeof given !== 'object' || given === null) return 0;
  const parts = Array.isArray(given) ? given : Object.entries(given).flat();
  return parts.reduce((sum: number, part) => sum + unheld(part), 0);
}

describe('a record that Postgres can hold', () => {
  test('has U+FFFD exactly for each NUL and each half of a pair, and keeps each replaced text', () => {
    fc.assert(
      fc.property(fc.dictionary(text, value), fc.nat(2), (given, indent) => {
        const record = JSON.stringify({ ...given, id: 1 }, null, indent);
        const made = holdableRecord(record);
        if (unheld(given) === 0) {
          expect(made).toBeUndefined();
          return;
        }
        expect(JSON.parse(made?.text ?? '')).toEqual({ ...(held(given) as object), id: 1 });
        const replaced = Object.values(JSON.parse(made?.replaced ?? '') as Record<string, string>);
        expect(replaced).toHaveLength(unheld(given));
        for (const sent of replaced) {
          const parsed = JSON.parse(`"${sent}"`) as string;
          expect(parsed).not.toBe(holdable(parsed));
        }
        expect(holdable(made?.replaced ?? '')).toBe(made?.replaced);
      }),
      { seed: 20_261_128, numRuns: cases(500, 5_000) },
    );
  });

  test.each([
    String.raw`{"id":"\u0000"}`,
    String.raw`{"a":"\ud800","i\u0064":"\udc00"}`,
    String.raw`{"id":{"id":["\u0000"]}}`,
    String.raw`{"id":{"\u0000":1}}`,
  ])('is not made of %s, because it would have another id', (record) => {
    expect(holdableRecord(record)).toBeUndefined();
  });

  test('is made although a part has such an id', () => {
    expect(holdableRecord(String.raw`{"part":{"id":"\u0000"},"id":"a"}`)).toEqual({
      text: String.raw`{"part":{"id":"\ufffd"},"id":"a"}`,
      replaced: JSON.stringify({ 'part.id': String.raw`\u0000` }),
    });
  });

  test('has paths of bounded length, all of them different', () => {
    const deep = `${'{"name":'.repeat(2_000)}["\\u0000","\\u0000"]${'}'.repeat(2_000)}`;
    const paths = Object.keys(JSON.parse(holdableRecord(deep)?.replaced ?? '') as object);
    expect(paths).toHaveLength(2);
    expect(Math.max(...paths.map((path) => path.length))).toBeLessThan(220);
  });
});

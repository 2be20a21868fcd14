import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { holdable, holdableRecord } from '../../db/records/unholdable.ts';
import { cases } from '../support/cases.ts';

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

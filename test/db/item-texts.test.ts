import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { itemTexts } from '../../db/records/page.ts';
import { cases } from '../support/cases.ts';
import { anyCharacter } from '../support/text.ts';

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

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type FieldDifference, VersionDiff } from '../../operations/versions/diff.ts';

/** Lists the differences of pairs of records. */
function differences(
  ...pairs: readonly (readonly [from: string | object, to: string | object])[]
): FieldDifference[] {
  const diff = new VersionDiff();
  const text = (record: string | object) => (typeof record === 'string' ? record : JSON.stringify(record));
  for (const [at, [from, to]] of pairs.entries()) diff.compare(`record ${at}`, text(from), text(to));
  return diff.differences();
}

const changes = (found: readonly FieldDifference[]) => found.map(({ path, change }) => [path, change]);

describe('two versions of records', () => {
  test('that are equal differ in nothing, for any records', () => {
    fc.assert(
      fc.property(fc.array(fc.json()), (records) => {
        expect(differences(...records.map((record) => [record, record] as const))).toEqual([]);
      }),
    );
  });

  test('a field of only one version is found at any path', () => {
    const names = fc.array(fc.string(), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(names, fc.jsonValue(), (path, value) => {
        const nested = path.reduceRight<unknown>(
          (inner, name) => Object.fromEntries([[name, inner]]),
          value,
        ) as object;
        const found = differences([{}, nested]);
        expect(found.every(({ change }) => change === 'appears')).toBe(true);
        expect(found.length).toBeGreaterThanOrEqual(path.length);
        expect(changes(differences([nested, {}]))).toEqual(found.map(({ path: at }) => [at, 'disappears']));
      }),
    );
  });

  test('differ by fields that appear, disappear, change type or value, or are sometimes missing', () => {
    const found = differences(
      [
        { id: 1, old: 'a', amount: 12.5, status: 'OPEN', lines: [{ a: 1 }], some: 1, same: [1, { b: null }] },
        {
          id: 1,
          fresh: true,
          amount: '12.50',
          status: 'open',
          lines: [{ a: 1, b: 2 }],
          same: [1, { b: null }],
        },
      ],
      [
        { id: 2, status: 'X', some: 1 },
        { id: 2, status: 'X', some: 1 },
      ],
    );
    expect(changes(found)).toEqual([
      ['/amount', 'type'],
      ['/fresh', 'appears'],
      ['/lines/*/b', 'appears'],
      ['/old', 'disappears'],
      ['/some', 'sometimes'],
      ['/status', 'value'],
    ]);
    expect(found[0]).toEqual({
      path: '/amount',
      change: 'type',
      records: 1,
      id: 'record 0',
      from: { types: ['number'], records: 1, example: '12.5' },
      to: { types: ['decimal'], records: 1, example: '"12.50"' },
    });
  });

  test('an example comes from a record with a value, if there is one', () => {
    const [found] = differences([{}, { a: null }], [{}, { a: 'x' }], [{}, { a: 'y' }]);
    expect(found).toMatchObject({ id: 'record 1', to: { example: '"x"', types: ['text'], records: 3 } });
  });

  test('numbers that are equal as floats differ by their digits', () => {
    expect(changes(differences(['{"a": 0.1}', '{"a": 0.10000000000000000001}']))).toEqual([['/a', 'value']]);
    expect(changes(differences(['{"a": 9007199254740993}', '{"a": 9007199254740992}']))).toEqual([
      ['/a', 'value'],
    ]);
  });

  test('a field with the same values at another path in every record counts as moved', () => {
    const pair = (total: string) =>
      [
        { totalCharges: total, kind: 'x' },
        { charges: { total }, sort: 'x' },
      ] as const;
    const found = differences(pair('1.50'), pair('2.50'));
    expect(found.map(({ path, change, movedTo, movedFrom }) => [path, change, movedTo ?? movedFrom])).toEqual(
      [
        ['/charges', 'appears', undefined],
        ['/charges/total', 'appears', '/totalCharges'],
        // A value that is the same in all records may be any field's.
        ['/kind', 'disappears', undefined],
        ['/sort', 'appears', undefined],
        ['/totalCharges', 'disappears', '/charges/total'],
      ],
    );
  });
});

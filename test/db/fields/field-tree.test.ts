import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FieldTree, type SeenField } from '../../../db/fields/field-tree.ts';
import { type ColumnType, columnType, kindOfText } from '../../../db/fields/kinds.ts';
import { stepOf, stepsOf } from '../../../db/fields/paths.ts';

/** Returns the fields that a tree finds in some records, by path. */
function seenOf(records: readonly unknown[]): Map<string, SeenField> {
  const tree = new FieldTree();
  for (const record of records) tree.observe(record);
  return new Map(tree.take(true).map((seen) => [seen.path, seen]));
}

describe('a field of records', () => {
  test('has a path, kinds, a count of records, an example and its different texts if they are few', () => {
    const seen = seenOf([
      {
        id: '8b5f3e0a-1d2c-4f6b-9a7e-0c1d2e3f4a5b',
        status: 'OPEN',
        lines: [{ amount: '1.50' }, { amount: 2 }],
      },
      {
        id: '8b5f3e0a-1d2c-4f6b-9a7e-0c1d2e3f4a5c',
        status: 'CLOSED',
        lines: [],
        due: '2026-02-28',
        more: null,
      },
    ]);
    expect([...seen.values()].map(({ path, kinds, records }) => [path, kinds.join(), records])).toEqual([
      ['', 'object', 2],
      ['/id', 'uuid', 2],
      ['/status', 'text', 2],
      ['/lines', 'array', 2],
      ['/lines/*', 'object', 1],
      ['/lines/*/amount', 'number,decimal', 1],
      ['/due', 'date', 1],
      ['/more', '', 1],
    ]);
    expect(seen.get('/status')).toMatchObject({ example: 'OPEN', values: ['OPEN', 'CLOSED'] });
    expect(seen.get('/id')).toMatchObject({ values: [] });
  });

  test('with more than 20 texts, or with a long text, is not an enumeration', () => {
    const many = Array.from({ length: 21 }, (_, n) => ({ name: `name ${n}`, note: 'n'.repeat(n * 2 + 1) }));
    expect(seenOf(many.slice(0, 20)).get('/name')?.values).toHaveLength(20);
    expect(seenOf(many).get('/name')?.values).toBeNull();
    expect(seenOf(many).get('/note')?.values).toBeNull();
  });

  test('has an example that is cut to its limit and that Postgres can hold', () => {
    const { example } = seenOf([{ a: `\0${'😀'.repeat(100)}\ud800` }]).get('/a') as SeenField;
    expect(example?.length).toBeLessThanOrEqual(80);
    expect(example).not.toContain('\0');
    expect(example?.isWellFormed()).toBe(true);
  });

  test('is taken once, and again after it has a new kind, or when all fields are taken for their counts', () => {
    const tree = new FieldTree();
    tree.observe({ a: 1, b: true });
    expect(tree.take(false).map(({ path }) => path)).toEqual(['', '/a', '/b']);
    const { news } = tree;
    tree.observe({ a: 2, b: false });
    expect([tree.news, tree.take(false)]).toEqual([news, []]);
    tree.observe({ a: 'text', b: null });
    expect(tree.news).toBeGreaterThan(news);
    const taken = tree.take(false);
    expect(taken.map(({ path, kinds, records }) => [path, kinds.join(), records])).toEqual([
      ['/a', 'number,text', 2],
    ]);
    tree.restore(taken);
    expect(tree.take(false)).toEqual(taken);
    expect(tree.take(true).map(({ path, records }) => [path, records])).toEqual([
      ['', 2],
      ['/b', 2],
    ]);
  });
});

describe('memory is bounded:', () => {
  test('an object whose keys are UUIDs is a map from its first key', () => {
    const map = () => Object.fromEntries([randomUUID(), randomUUID()].map((id) => [id, { usage: 1 }]));
    const seen = seenOf([{ meters: map() }, { meters: map() }]);
    expect([...seen.keys()]).toEqual(['', '/meters', '/meters/*', '/meters/*/usage']);
    expect(seen.get('/meters')?.collapsed).toBe(true);
  });

  test('an object with more than 300 fields becomes a map and keeps their kinds', () => {
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`key ${n}`, { n }]));
    expect(seenOf([{ many }]).size).toBe(602);
    const seen = seenOf([{ many }, { many: { 'one more': { n: 'text', m: 1 } } }]);
    expect([...seen.keys()]).toEqual(['', '/many', '/many/*', '/many/*/n', '/many/*/m']);
    expect(seen.get('/many/*/n')?.kinds).toEqual(['number', 'text']);
  });

  test('a record with more than 300 fields keeps 300, and the others become one', () => {
    const record = Object.fromEntries(Array.from({ length: 310 }, (_, n) => [`f${n}`, n]));
    const seen = seenOf([record]);
    expect([seen.size, seen.has('/f299'), seen.has('/f300'), seen.has('/*')]).toEqual([
      302,
      true,
      false,
      true,
    ]);
    expect(seen.get('')?.collapsed).toBe(true);
  });

  test('values nested deeper than 8, or with a path too long to index, are not recorded', () => {
    const nest = (depth: number): object => (depth === 0 ? { end: 1 } : { in: nest(depth - 1) });
    const seen = seenOf([nest(20), { long: { ['k'.repeat(2_100)]: 1 } }]);
    expect(Math.max(...[...seen.keys()].map((path) => stepsOf(path).length))).toBe(8);
    expect(seen.get('/long')?.collapsed).toBe(true);
    expect(seen.get('/long/*')?.kinds).toEqual(['number']);
  });

  test('a resource has at most 5,000 fields, for any records', () => {
    const tree = new FieldTree();
    for (let n = 0; n < 2_000; n++) {
      const fields = Array.from({ length: 10 }, (_, m) => [
        `f${n}-${m}`,
        { [`g${n}`]: m, list: [{ [`h${m}`]: n }] },
      ]);
      tree.observe({ [`group ${n % 250}`]: Object.fromEntries(fields) });
    }
    expect(tree.take(true).length).toBeLessThan(10_000);
  });
});

test('a path can contain any name', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (names) => {
      const path = names.map((name) => `/${stepOf(name)}`).join('');
      expect(stepsOf(path)).toEqual(names.map((field) => ({ field })));
    }),
  );
  expect(stepsOf('/a/*/b')).toEqual([{ field: 'a' }, 'any', { field: 'b' }]);
});

describe('types of columns', () => {
  test.each([
    ['2024-02-29', 'date'],
    ['2023-02-29', 'text'],
    ['0000-01-01', 'text'],
    ['2026-05-01T12:30:00.123456', 'timestamp'],
    ['2026-05-01T12:30:00.1234567', 'text'],
    ['2026-05-01 24:00', 'text'],
    ['2026-05-01T12:30:00+05:30', 'timestamp'],
    ['12.50', 'decimal'],
    ['007.5', 'text'],
    ['1250', 'text'],
    ['-0.5', 'decimal'],
    ['', 'text'],
    ['ABC', 'text'],
    ['8B5F3E0A-1d2c-4f6b-9a7e-0c1d2e3f4a5b', 'uuid'],
  ])('%j is a %s', (text, kind) => {
    expect(kindOfText(text)).toBe(kind);
  });

  test('can only become wider, for any records', () => {
    // For each type, the types that can hold all its values.
    const wider: Readonly<Record<ColumnType, readonly ColumnType[]>> = {
      boolean: ['boolean', 'text', 'jsonb'],
      numeric: ['numeric', 'text', 'jsonb'],
      timestamptz: ['timestamptz', 'text', 'jsonb'],
      date: ['date', 'text', 'jsonb'],
      uuid: ['uuid', 'text', 'jsonb'],
      text: ['text', 'jsonb'],
      jsonb: ['jsonb'],
    };
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom(
        '2026-01-01',
        '2026-01-01T00:00:00',
        '1.5',
        '3',
        '8b5f3e0a-1d2c-4f6b-9a7e-0c1d2e3f4a5b',
      ),
    );
    fc.assert(
      fc.property(fc.array(value, { maxLength: 8 }), (values) => {
        const tree = new FieldTree();
        let before: ColumnType | null = null;
        for (const a of values) {
          tree.observe({ a });
          const field = tree.take(true).find(({ path }) => path === '/a') as SeenField;
          const type = columnType(field.kinds);
          if (before !== null) expect(wider[before]).toContain(type);
          before = type;
        }
      }),
    );
  });
});

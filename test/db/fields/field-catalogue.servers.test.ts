import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { chooseCompanies } from '../../../db/backfill/run-companies.ts';
import { connectWarehouse } from '../../../db/connection/connect.ts';
import { createFieldCatalogue, type FieldCatalogue } from '../../../db/fields/field-catalogue.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const opened: FieldCatalogue[] = [];
const warehouse = await createWarehouse();
afterAll(async () => {
  for (const catalogue of opened) await catalogue.close();
  await warehouse.drop();
});

/** Opens the catalogue as another process would. */
function open(): FieldCatalogue {
  const onError = (error: unknown) => {
    throw error;
  };
  const catalogue = createFieldCatalogue({ db: warehouse.db, onError });
  opened.push(catalogue);
  return catalogue;
}

const rows = async (query: ReturnType<typeof sql>) => (await warehouse.db.execute(query)).rows;
const fields = (resource: string) =>
  rows(sql`select path, types, records::int, share::float, example, enum_values, collapsed
    from ops.field_catalogue where resource = ${resource} order by path`);
const changes = (resource: string) =>
  rows(sql`select path, change, value, is_baseline from ops.contract_changes where resource = ${resource}
    order by id`);
let resource: string;
beforeEach(() => {
  resource = `records ${randomUUID()}`;
});

describe('the field catalogue', () => {
  test('has new fields as soon as the note returns, and counts of known fields after a flush', async () => {
    const catalogue = open();
    await catalogue.note(resource, 'v2', [{ id: 1, status: 'OPEN' }, { id: 2 }]);
    await catalogue.note(resource, 'v2', [{ id: 3 }, { id: 4, status: null }]);
    expect(await fields(resource)).toMatchObject([
      { path: '', types: ['object'], records: 2, share: 1 },
      { path: '/id', types: ['number'], records: 2, share: 1, example: '1', enum_values: null },
      { path: '/status', types: ['text'], records: 1, share: 0.5, example: 'OPEN', enum_values: ['OPEN'] },
    ]);
    await catalogue.flush();
    expect(await fields(resource)).toMatchObject([
      { records: 4 },
      { records: 4 },
      { records: 2, share: 0.5 },
    ]);
  });

  test('adds up over several processes, in any order', async () => {
    const catalogues = [open(), open(), open()];
    await Promise.all(
      catalogues.flatMap((catalogue, n) =>
        Array.from({ length: 5 }, (_, m) =>
          catalogue.note(resource, 'v2', [{ [`f${n}`]: m, status: `S${n}${m}` }]),
        ),
      ),
    );
    for (const catalogue of catalogues) await catalogue.flush();
    const found = await fields(resource);
    expect(found.map(({ path, records }) => [path, records])).toEqual([
      ['', 15],
      ['/f0', 5],
      ['/f1', 5],
      ['/f2', 5],
      ['/status', 15],
    ]);
    expect(found[4]?.enum_values).toHaveLength(15);
    await catalogues[0]?.note(
      resource,
      'v2',
      Array.from({ length: 6 }, (_, n) => ({ status: `T${n}` })),
    );
    await catalogues[0]?.flush();
    expect((await fields(resource))[4]?.enum_values).toBeNull();
  });

  test('keeps API versions apart', async () => {
    const catalogue = open();
    await catalogue.note(resource, 'v2', [{ amount: 1 }]);
    await catalogue.note(resource, 'v2.2', [{ amount: '1.00' }]);
    expect(
      await rows(sql`select api_version, types from ops.field_catalogue
        where resource = ${resource} and path = '/amount' order by 1`),
    ).toEqual([
      { api_version: 'v2', types: ['number'] },
      { api_version: 'v2.2', types: ['decimal'] },
    ]);
  });

  test('collapses a map and removes its keys, in all processes', async () => {
    const [one, other] = [open(), open()];
    const map = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n]));
    await other.note(resource, 'v2', [{ map: { known: true } }]);
    await one.note(resource, 'v2', [{ map: map(299) }]);
    expect(await fields(resource)).toHaveLength(302);
    await one.note(resource, 'v2', [{ map: map(300) }]);
    const paths = async () => (await fields(resource)).map(({ path, types }) => [path, types]);
    const collapsed = [
      ['', ['object']],
      ['/map', ['object']],
      ['/map/*', ['boolean', 'number']],
    ];
    expect(await paths()).toEqual(collapsed);
    await other.note(resource, 'v2', [{ map: { 'one more': 'text' } }]);
    expect((await paths()).map(([path]) => path)).toEqual(['', '/map', '/map/*']);
    expect(new Set((await paths())[2]?.[1] as string[])).toEqual(new Set(['number', 'boolean', 'text']));
    await open().note(resource, 'v2', [{ map: { k1: 1 } }]);
    expect((await paths()).map(([path]) => path)).toEqual(['', '/map', '/map/*']);
  });

  test('reports a failure once while it repeats, and again after a write', async () => {
    const reported: string[] = [];
    const onError = ({ message }: Error) => void reported.push(message);
    const catalogue = createFieldCatalogue({ db: warehouse.db, onError });
    const table = (from: string, to: string) =>
      warehouse.db.execute(sql.raw(`alter table metersync.${from} rename to ${to}`));
    const failTwice = async (field: string) => {
      await table('field_catalogue', 'away');
      await catalogue.note(resource, 'v2', [{ [field]: 1 }]);
      await catalogue.note(resource, 'v2', [{ [`${field}2`]: 1 }]);
      await table('away', 'field_catalogue');
    };
    const failure = expect.stringMatching(
      /^the field catalogue could not be written: relation .* does not exist$/,
    );
    await failTwice('a');
    expect(reported).toEqual([failure]);
    await catalogue.note(resource, 'v2', [{ a: 1 }]);
    await failTwice('b');
    expect(reported).toEqual([failure, failure]);
    await catalogue.note(resource, 'v2', [{ b: 1 }]);
    const paths = (await fields(resource)).map(({ path }) => path);
    expect(paths).toEqual(['', '/a', '/a2', '/b', '/b2']);
    await catalogue.close();
  });

  test('searches the fields once for keys of maps, however many maps there are', async () => {
    const single = connectWarehouse({ url: warehouse.url, timeZone: 'UTC', max: 1, onError: () => {} });
    onTestFinished(() => single.close());
    await single.db.execute(sql`
      insert into metersync.field_catalogue (resource, api_version, path, types, records, collapsed)
      select ${resource}, 'v2', '/f' || n, array['object'], 1, n < 5 from generate_series(1, 1000) n`);
    const rowsRead = async () => {
      await single.db.execute(sql`select pg_stat_force_next_flush()`);
      const { rows: counters } = await single.db.execute<{ read: string }>(sql`
        select seq_tup_read + idx_tup_fetch as read from pg_stat_user_tables
        where relid = 'metersync.field_catalogue'::regclass`);
      return Number(counters[0]?.read);
    };
    const before = await rowsRead();
    const catalogue = createFieldCatalogue({ db: single.db, onError: () => {} });
    await catalogue.note(resource, 'v2', [{ f1: { key: 1 } }]);
    const read = (await rowsRead()) - before;
    await catalogue.close();
    expect(read).toBeGreaterThan(1_000);
    expect(read).toBeLessThan(100_000);
  });

  test('accepts any names and texts', async () => {
    const record =
      JSON.parse(`{"__proto__": 1, "": 2, "a/b~c*": 3, "\\u0000": 4, "'; drop --": 5, "naïve 😀": "\\u0000x",
      "${'n'.repeat(200)}": "NULL", "{}": "{\\"a\\"}", "\\ud800": 1}`);
    await open().note(resource, 'v2', [record]);
    expect((await fields(resource)).map(({ path }) => path).sort()).toEqual(
      [
        '',
        '/',
        "/'; drop --",
        '/__proto__',
        '/a~1b~0c~2',
        '/naïve 😀',
        '/\ufffd',
        `/${'n'.repeat(200)}`,
        '/{}',
      ].sort(),
    );
  });
});

describe('contract changes', () => {
  test('list each first occurrence of a resource, a field, a type or a value', async () => {
    const [one, other] = [open(), open()];
    await one.note(resource, 'v2', [{ status: 'OPEN' }]);
    await other.note(resource, 'v2', [{ status: 'OPEN' }]);
    await other.note(resource, 'v2', [{ status: 'CLOSED', amount: 1 }]);
    await one.note(resource, 'v2', [{ status: 3 }, { status: 'CLOSED' }]);
    expect(await changes(resource)).toEqual([
      { path: '', change: 'resource', value: 'object', is_baseline: true },
      { path: '/status', change: 'path', value: 'text', is_baseline: true },
      { path: '/amount', change: 'path', value: 'number', is_baseline: true },
      { path: '/status', change: 'value', value: 'CLOSED', is_baseline: true },
      { path: '/status', change: 'type', value: 'number', is_baseline: true },
    ]);
  });

  test('are not a baseline once a backfill of all companies has ended for some minutes', async () => {
    const catalogue = open();
    const isBaseline = async (field: string) => {
      await catalogue.note(resource, 'v2', [{ a: 1, [field]: 1 }]);
      return (await changes(resource)).find(({ path }) => path === `/${field}`)?.is_baseline;
    };
    await catalogue.note(resource, 'v2', [{ a: 1 }]);
    await warehouse.db.execute(sql`update metersync.field_catalogue
      set first_seen_at = first_seen_at - interval '1 hour' where resource = ${resource}`);
    const [ended, ofChosen, earlier] = [randomUUID(), randomUUID(), randomUUID()];
    await warehouse.db.execute(sql`insert into metersync.runs (run_id, state, finished_at)
      values (${ended}::uuid, 'complete', now()), (${ofChosen}::uuid, 'complete', now() - interval '20 minutes')`);
    await chooseCompanies(warehouse.db, ofChosen, [randomUUID()]);
    expect(await isBaseline('b')).toBe(true);
    await warehouse.db.execute(sql`insert into metersync.runs (run_id, state, finished_at)
      values (${earlier}::uuid, 'complete', now() - interval '20 minutes')`);
    expect(await isBaseline('c')).toBe(false);
  });
});

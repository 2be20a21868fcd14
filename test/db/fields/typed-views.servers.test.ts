import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createFieldCatalogue, type FieldCatalogue } from '../../../db/fields/field-catalogue.ts';
import { type AppliedTypedViews, applyTypedViews } from '../../../db/fields/typed-views.ts';
import { migrateWarehouse } from '../../../db/migrate/migrate.ts';
import { cases } from '../../support/cases.ts';
import { forFile } from '../../support/for-file.ts';
import { loginAs } from '../../support/login.ts';
import { type SentRecord, writeRecords } from '../../support/pages.ts';
import { anyCharacter } from '../../support/text.ts';
import { createWarehouse } from '../../support/warehouse.ts';
import { missingValues } from './missing-values.ts';

let catalogue: FieldCatalogue;
const companyId = randomUUID();
const warehouse = await forFile(createWarehouse());
beforeEach(() => {
  catalogue = createFieldCatalogue({
    db: warehouse.db,
    onError: (error) => {
      throw error;
    },
  });
});
afterEach(async () => {
  await forget();
});

const rows = async (statement: string) => (await warehouse.db.execute(sql.raw(statement))).rows;

/** Restores the state in which no record has been read. */
async function forget(): Promise<void> {
  await rows(`drop table if exists fields.documents_lines`).catch(() => {});
  for (const { name } of await rows(
    `select c.oid::regclass::text as name from pg_class c where relnamespace = 'fields'::regnamespace`,
  )) {
    await rows(`drop view ${name} cascade`);
  }
  await rows(`truncate utility.documents, metersync.field_catalogue`);
  await applyTypedViews(warehouse.db);
}

/** Writes a page of documents, and creates the views that follow from the catalogue. */
async function sync(records: readonly SentRecord[], apiVersion = 'v2.2'): Promise<AppliedTypedViews> {
  await writeRecords(warehouse, 'documents', records, { companyId, apiVersion });
  const parsed = records.map((record) => (typeof record === 'string' ? JSON.parse(record) : record));
  await catalogue.note('documents', apiVersion, parsed);
  return await applyTypedViews(warehouse.db);
}

const types = async (view: string) =>
  Object.fromEntries(
    (
      await rows(`select attname as name, format_type(atttypid, null) as type from pg_attribute
        where attrelid = 'fields.${view}'::regclass and attnum > 0 order by attnum`)
    ).map(({ name, type }) => [name, type]),
  );

describe('typed views', () => {
  test('exist before any record is read', async () => {
    for (const view of ['companies', 'sites', 'connections', 'meters', 'documents', 'usage_data']) {
      expect(await rows(`select * from fields.${view}`)).toEqual([]);
    }
  });

  test('have a column for each scalar, also in objects, and arrays of objects have their own views', async () => {
    const id = randomUUID();
    const job = randomUUID();
    await sync([
      `{"id": "${id}", "totalCharges": "1203.50", "isFlagged": false, "dueDate": "2026-06-01", "jobId": "${job}",
        "created": "2026-05-01T10:00:00.123456", "rows": 123456789012345678901234567890.5, "tags": ["a", "b"],
        "provider": {"name": "Power & Co", "address": {"zip": "00123"}}, "company": {"id": "${companyId}"},
        "lines": [{"amount": 1, "taxes": [{"rate": "0.10"}]}, {"amount": 2, "taxes": [{"rate": "0.20"}, {"rate": "0.30"}]}]}`,
    ]);
    expect(await rows(`select * from fields.documents`)).toMatchObject([
      {
        id,
        company_id: companyId,
        api_version: 'v2.2',
        total_charges: '1203.50',
        is_flagged: false,
        due_date: '2026-06-01',
        job_id: job,
        created: '2026-05-01 10:00:00.123456+00',
        rows: '123456789012345678901234567890.5',
        tags: ['a', 'b'],
        provider_name: 'Power & Co',
        provider_address_zip: '00123',
      },
    ]);
    expect(
      await rows(`select lines_position, position, rate from fields.documents_lines_taxes order by 1, 2`),
    ).toEqual([
      { lines_position: 1, position: 1, rate: '0.10' },
      { lines_position: 2, position: 1, rate: '0.20' },
      { lines_position: 2, position: 2, rate: '0.30' },
    ]);
    expect(await rows(`select document_id, position, amount from fields.documents_lines order by 2`)).toEqual(
      [
        { document_id: id, position: 1, amount: '1' },
        { document_id: id, position: 2, amount: '2' },
      ],
    );
  });

  test('read times without a zone in the time zone of the service, not of the reader', async () => {
    const other = await createWarehouse('America/New_York');
    try {
      const own = createFieldCatalogue({ db: other.db, onError: () => {} });
      const record = { id: randomUUID(), at: '2026-05-01T10:00:00' };
      await writeRecords(other, 'documents', [record], { companyId });
      await own.note('documents', 'v2.2', [record]);
      await applyTypedViews(other.db);
      const { rows: found } = await other.db.transaction(async (tx) => {
        await tx.execute(sql`set local time zone 'UTC'`);
        return await tx.execute(sql`select at from fields.documents`);
      });
      expect(found).toEqual([{ at: '2026-05-01 14:00:00+00' }]);
    } finally {
      await other.drop();
    }
  });

  test('contain no tombstoned records', async () => {
    const [gone, there] = [randomUUID(), randomUUID()];
    await sync([
      { id: gone, lines: [{ a: 1 }] },
      { id: there, lines: [{ a: 2 }] },
    ]);
    await rows(
      `update utility.documents set deleted_at = now(), deleted_reason = 'event' where id = '${gone}'`,
    );
    expect(await rows(`select id from fields.documents`)).toEqual([{ id: there }]);
    expect(await rows(`select a from fields.documents_lines`)).toEqual([{ a: '2' }]);
  });

  test('have comments with the origin of every view and column', async () => {
    await sync([{ id: randomUUID(), amount: '1.50', lines: [{ kind: 'A' }] }]);
    const silent = await rows(`select c.relname, a.attname from pg_class c
      left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
      where c.relnamespace = 'fields'::regnamespace and c.relname like 'documents%'
        and (obj_description(c.oid) is null or col_description(c.oid, a.attnum) is null)`);
    expect(silent).toEqual([]);
    expect(await rows(`select col_description('fields.documents'::regclass, 6) as comment`)).toEqual([
      { comment: '/amount: decimal.' },
    ]);
  });

  test('can be read by analysts, including those added later', async () => {
    await sync([{ id: randomUUID(), lines: [{ a: 1 }] }]);
    await warehouse.db.transaction(async (tx) => {
      await tx.execute(sql`set local role metersync_analyst`);
      const { rowCount } = await tx.execute(sql`select * from fields.documents_lines, fields.documents`);
      expect(rowCount).toBe(1);
    });
  });
});

describe('a change of what the service sends', () => {
  const record = (fields: object) => ({ id: randomUUID(), ...fields });

  test("adds columns at the end, and keeps users' views on the view", async () => {
    await sync([record({ b: 1 })]);
    await rows(`create view public.mine as select * from fields.documents`);
    expect(await sync([record({ b: 2, a: true, c: { d: 1 } })])).toMatchObject({ blocked: [] });
    expect(Object.keys(await types('documents')).slice(5)).toEqual(['b', 'a', 'c_d']);
    expect(await rows(`select count(*)::int as count from public.mine`)).toEqual([{ count: 2 }]);
    expect(await sync([])).toEqual({ applied: [], blocked: [] });
  });

  test('widens types, keeps grants, and loses no value', async () => {
    await sync([record({ amount: 1.5, day: '2026-05-01' })]);
    await rows(`create role reader_of_views`);
    try {
      await rows(`grant select on fields.documents to reader_of_views with grant option`);
      await rows(`grant select (id) on fields.documents to public`);
      await sync([record({ amount: 'n/a', day: '' })]);
      expect(await types('documents')).toMatchObject({ amount: 'text', day: 'text' });
      expect(await rows(`select amount, day from fields.documents order by amount`)).toEqual([
        { amount: '1.5', day: '2026-05-01' },
        { amount: 'n/a', day: '' },
      ]);
      expect(
        await rows(`select has_table_privilege('reader_of_views', 'fields.documents', 'select with grant option') as all,
          has_table_privilege('metersync_analyst', 'fields.documents', 'select') as analyst,
          (select count(*)::int from pg_attribute where attrelid = 'fields.documents'::regclass
            and attacl::text like '%{=r/%') as column`),
      ).toEqual([{ all: true, analyst: true, column: 1 }]);
    } finally {
      await rows(`drop owned by reader_of_views`);
      await rows(`drop role reader_of_views`);
    }
  });

  test('keeps other grants when a column that somebody may read is removed', async () => {
    await sync([record({ map: { a: 1 }, b: 1 })]);
    await rows(`grant select (map_a, b) on fields.documents to public`);
    const many = Object.fromEntries(Array.from({ length: 301 }, (_, n) => [`key${n}`, n]));
    expect(await sync([record({ map: many, b: 2 })])).toMatchObject({ blocked: [] });
    expect(await types('documents')).toMatchObject({ map: 'jsonb', b: 'numeric' });
    const granted = `select attname as name from pg_attribute where attrelid = 'fields.documents'::regclass
      and attacl::text like '%{=r/%'`;
    expect(await rows(granted)).toEqual([{ name: 'b' }]);
  });

  test("is reported if a user's view blocks it, and all other views are applied", async () => {
    await sync([record({ amount: 1.5 })]);
    await rows(`create view public.mine as select id, amount from fields.documents`);
    await rows(`create function public.all_of_it() returns setof fields.documents language sql
      as 'select * from fields.documents'`);
    const before = await types('documents');
    const done = await sync([record({ amount: 'n/a', list: [{ a: 1 }] })]);
    expect(done.applied).toEqual(['fields."documents_list"']);
    const by = expect.arrayContaining(['view public.mine', 'function public.all_of_it()']);
    expect(done.blocked).toMatchObject([{ view: 'fields."documents"', by }]);
    expect(await types('documents')).toEqual(before);
    expect(await rows(`select a from fields.documents_list`)).toEqual([{ a: '1' }]);
    await rows(`drop view public.mine`);
    await rows(`drop function public.all_of_it()`);
    const rest = { applied: ['fields."documents"'], blocked: [] };
    expect(await applyTypedViews(warehouse.db)).toEqual(rest);
    expect(await types('documents')).toMatchObject({ amount: 'text', list: 'jsonb' });
  });

  test('that turns an object into a map shows the whole map in one column', async () => {
    await sync([record({ map: { k0: 1, k1: { a: 1 } } })]);
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`k${n}`, 'text']));
    await sync([record({ map: many })]);
    expect(Object.entries(await types('documents')).slice(5)).toEqual([['map', 'jsonb']]);
    const found = await rows(
      `select map -> 'k0' as k0, map ->> 'k399' as last from fields.documents order by 1`,
    );
    expect(found).toEqual([
      { k0: 'text', last: 'text' },
      { k0: 1, last: null },
    ]);
  });

  test("stays within Postgres's limits, however often the fields change", async () => {
    for (const [restart, version] of ['v2', 'v2', 'v2.1', 'v2.2', 'v2.3'].entries()) {
      catalogue = createFieldCatalogue({ db: warehouse.db, onError: () => {} });
      const fields = Object.fromEntries(Array.from({ length: 290 }, (_, n) => [`acct ${restart} ${n}`, n]));
      expect(await sync([record({ ...fields, accounts: fields })], version)).toMatchObject({ blocked: [] });
    }
    expect(Object.keys(await types('documents'))).toHaveLength(1_000);
    await migrateWarehouse(warehouse.db);
  });

  test('is made once by several processes', async () => {
    await writeRecords(warehouse, 'documents', [record({ a: 1 })], { companyId });
    await catalogue.note('documents', 'v2.2', [record({ a: 1, b: [{ c: 1 }] })]);
    const done = await Promise.all([1, 2, 3, 4].map(() => applyTypedViews(warehouse.db)));
    expect(done.map(({ applied }) => applied.length).sort()).toEqual([0, 0, 0, 2]);
  });
});

describe('names', () => {
  test('of fields can be any text, and their views work', async () => {
    const words = `select user order value position id companyId api_version fooBar foo_bar 1st é 😀
      xmin ctid tableoid oid __proto__ constructor " ' \\ $1 $$ %s {} a/b a~b a*b *`;
    const long = 'n'.repeat(200);
    const odd = ["'; drop table utility.documents; --", 'FOO BAR', '', '  ', '\t', long, `${long}2`];
    const names = [...words.split(/\s+/), ...odd];
    const all = (value: (name: string) => unknown) =>
      Object.fromEntries(names.map((name) => [name, value(name)]));
    const [inside, lists] = [all(() => 'in an object'), all(() => [{ in: 'a list' }])];
    await sync([{ ...all(() => 'text'), inside, lists, plain: [all(() => 1)], id: randomUUID() }]);
    const views = await rows(`select viewname as name from pg_views where schemaname = 'fields'`);
    expect(views.length).toBeGreaterThan(names.length);
    for (const { name } of views) {
      await rows(`select * from fields.${pg.escapeIdentifier(String(name))}`);
    }
    expect(
      await rows(`select count(*)::int - 4 as columns from pg_attribute
        where attrelid = 'fields.documents_plain'::regclass and attnum > 0`),
    ).toEqual([{ columns: names.length }]);
    const [row] = await rows(`select * from fields.documents_plain`);
    expect(Object.values(row ?? {}).filter((value) => value === '1')).toHaveLength(names.length);
    expect(row).toMatchObject({ select: '1', foo_bar: '1', foo_bar_2: '1', foo_bar_3: '1', position: 1 });
    expect(await missingValues(warehouse, 'documents')).toEqual([]);
  });

  test("of views avoid the names of other users' relations in the schema fields", async () => {
    await rows(`create table fields.documents_lines (mine int)`);
    await sync([{ id: randomUUID(), lines: [{ a: 1 }] }]);
    expect(await types('documents_lines')).toEqual({ mine: 'integer' });
    expect(await rows(`select a from fields.documents_lines_2`)).toEqual([{ a: '1' }]);
  });

  test.each([
    ['totalCharges', 'total_charges'],
    ['auditTrailURL', 'audit_trail_url'],
    ['URLOfPortal', 'url_of_portal'],
    ['usage2Date', 'usage2_date'],
    ['ISO-4217 code', 'iso_4217_code'],
    ['  spaced  ', 'spaced'],
    ['$ref', 'ref'],
    ['1st', '_1st'],
    ['naïveÜber', 'naïve_über'],
    ['電気', '電気'],
    ['', 'field'],
    ['😀', 'field'],
    ['"; drop table x; --', 'drop_table_x'],
    ['電'.repeat(40), '電'.repeat(21)],
  ])('of the field %j is %s', async (field, name) => {
    await sync([{ id: randomUUID(), [field]: 1 }]);
    expect(Object.keys(await types('documents')).at(-1)).toBe(name);
  });

  test('stay with their field', async () => {
    await sync([{ id: randomUUID(), foo_bar: 1 }]);
    await sync([{ id: randomUUID(), fooBar: 'x', FOOBAR: true, foo: { bar: 2 } }]);
    expect(await types('documents')).toMatchObject({
      foo_bar: 'numeric',
      foo_bar_2: 'numeric',
      foo_bar_3: 'text',
      foobar: 'boolean',
    });
    expect(await missingValues(warehouse, 'documents')).toEqual([]);
  });
});

test('a writer cannot change views, and cannot trick the owner through the catalogue', async () => {
  const writer = await loginAs('metersync_writer', warehouse);
  await rows(`create or replace function public.called() returns text language sql as $$ select 'called' $$`);
  await rows('create view fields.mine as select 1 as mine');
  const odd = [
    `/a' || public.called() || 'b`,
    `/a"; drop view fields.mine; --`,
    `/x/*/y' || public.called() || '`,
    `'; drop view fields.mine; --`,
    '/lines\\',
  ];
  const strange = fc.string({ unit: anyCharacter, maxLength: 60 });
  for (const text of [...odd, ...fc.sample(strange, cases(40, 400))]) {
    const path = text.replaceAll('\0', '').toWellFormed();
    await writer.db.execute(sql`insert into metersync.field_catalogue (resource, api_version, path, types)
      values ('documents', ${path}, ${path}, ${sql.param([path, 'text', 'object', 'array'])}::text[]) on conflict do nothing`);
  }
  const code = '42501';
  await expect(applyTypedViews(writer.db)).rejects.toMatchObject({ cause: { code } });
  expect(await applyTypedViews(warehouse.db)).toMatchObject({ blocked: [] });
  expect(await rows('select mine from fields.mine')).toEqual([{ mine: 1 }]);
  const calls = await rows(`select from pg_depend where refobjid = 'public.called()'::regprocedure`);
  expect(calls).toEqual([]);
  await rows('drop function public.called()');
});

test('typed views lose no value, for any records in any order', async () => {
  const scalar = fc.oneof(
    fc.jsonValue({ maxDepth: 0 }),
    fc.constantFrom(
      '2026-01-01',
      '2026-02-30',
      '2026-01-01T00:00:00.123456',
      '2026-01-01T00:00:00Z',
      '1.50',
      '007',
      'a\0',
      '\udc00',
    ),
    fc.constantFrom('8b5f3e0a-1d2c-4f6b-9a7e-0c1d2e3f4a5b', '', 'true', 1.5, -0.25, 1e21, 5e-7),
  );
  const names = fc.oneof(
    fc.constantFrom('a', 'A', 'b', 'aB', 'a_b', 'position', 'value', ''),
    fc.string({ maxLength: 3 }),
    fc.constantFrom('\0', 'a\ud800'),
  );
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', maxDepth: 4 },
      scalar,
      fc.dictionary(names, tie('value'), { maxKeys: 4 }),
      fc.array(tie('value'), { maxLength: 3 }),
    ),
  }));
  const records = fc.array(
    fc.array(fc.dictionary(names, value, { maxKeys: 5 }), { minLength: 1, maxLength: 3 }),
    {
      minLength: 1,
      maxLength: 3,
    },
  );
  await fc.assert(
    fc.asyncProperty(records, async (pages) => {
      await forget();
      catalogue = createFieldCatalogue({ db: warehouse.db, onError: () => {} });
      for (const page of pages) {
        await sync(page.map((record) => ({ ...(record as object), id: randomUUID() })));
        expect(await missingValues(warehouse, 'documents')).toEqual([]);
      }
    }),
    { numRuns: cases(4, 12) },
  );
}, 120_000);

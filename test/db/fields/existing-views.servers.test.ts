import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createFieldCatalogue } from '../../../db/fields/field-catalogue.ts';
import { migrateWarehouse } from '../../../db/migrate.ts';
import { judgeViews } from '../../../operations/doctor/warehouse.ts';
import { cases } from '../../support/cases.ts';
import { loginAs } from '../../support/login.ts';
import { writeRecords } from '../../support/pages.ts';
import { anyCharacter } from '../../support/text.ts';
import { createWarehouse } from '../../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
const id = randomUUID();
beforeAll(async () => {
  warehouse = await createWarehouse();
  const documents = [{ id, amount: '1.50', lines: [{ kind: 'A' }] }];
  await writeRecords(warehouse, 'documents', documents, { companyId: randomUUID() });
  const catalogue = createFieldCatalogue({ db: warehouse.db, onError: () => {} });
  await catalogue.note('documents', 'v2.2', documents);
  await catalogue.close();
});
beforeEach(async () => {
  await migrateWarehouse(warehouse.db);
});
afterAll(() => warehouse.drop());

const rows = async (statement: string) => (await warehouse.db.execute(sql.raw(statement))).rows;
const definitions = (pattern: string) =>
  rows(
    `select viewname, definition from pg_views where schemaname = 'fields' and viewname ~ '${pattern}' order by 1`,
  );
const contents = async () => [
  await rows('select id, amount from fields.documents'),
  await rows('select document_id, kind from fields.documents_lines'),
];
const expected = [[{ id, amount: '1.50' }], [{ document_id: id, kind: 'A' }]];

interface Odd {
  readonly column?: object;
  readonly [key: string]: unknown;
}

describe('a row that the writer adds to the tables of typed views', () => {
  test.each([
    ['the name of a view of yours', `('mine', 'documents', '/mine', '')`, 'is no typed view'],
    ['a name that is no SQL name', `('a"; drop', 'documents', '/a', '')`, 'has a name'],
    ['a name that Postgres would cut off', `('${'n'.repeat(70)}', 'documents', '/n', '')`, 'has a name'],
    ['a resource without views', `('any', 'anything', '', '')`, 'is of a resource'],
    ['a path that is none', `('any', 'documents', 'any', '')`, 'shows no place'],
  ])('as a view with %s is removed with a warning', async (_, row, why) => {
    await rows('create or replace view fields.mine as select 1 as mine');
    const before = await definitions('.');
    const writer = await loginAs('metersync_writer', warehouse);
    await writer.db.execute(
      sql.raw(`insert into metersync.typed_views (name, resource, path, definition) values ${row}`),
    );
    expect(await judgeViews(warehouse.db)).toMatchObject({
      state: 'warn',
      saw: expect.stringContaining(why),
    });
    const { warnings } = await migrateWarehouse(warehouse.db);
    expect(warnings).toEqual([expect.stringContaining(why)]);
    expect(await definitions('.')).toEqual(before);
    expect(await migrateWarehouse(warehouse.db)).toMatchObject({ warnings: [] });
    expect(await judgeViews(warehouse.db)).toMatchObject({ state: 'ok' });
    await rows('drop view fields.mine');
  });

  test.each([
    ['a type that no column has', `('documents', 900, 'odd', '/odd', 'evil')`],
    ['a type with a statement in it', `('documents', 900, 'odd', '/odd', 'text; drop view analytics.bills')`],
    ['the name of an existing column', `('documents', 900, 'company_id', '/odd', 'text')`],
    ['an element where a field should be', `('documents', 900, 'odd', '/lines/*/kind', 'text')`],
    ['a field that is elsewhere', `('documents_lines', 900, 'odd', '/amount', 'text')`],
  ])('as a column with %s is removed with a warning', async (_, row) => {
    const before = await definitions('documents');
    const writer = await loginAs('metersync_writer', warehouse);
    await writer.db.execute(
      sql.raw(`insert into metersync.typed_columns (view_name, position, name, path, type) values ${row}`),
    );
    const { warnings } = await migrateWarehouse(warehouse.db);
    expect(warnings).toEqual([expect.stringContaining('column 900 of')]);
    expect(await definitions('documents')).toEqual(before);
    expect(await rows('select from metersync.typed_columns where position = 900')).toEqual([]);
  });

  const replaced = 'create or replace view fields.mine as select public.called() as mine';
  test.each([
    ['the name of a view of yours', { name: 'mine', column: { name: 'mine' } }],
    [
      'a statement for a table',
      {
        table: `documents r; ${replaced} from utility.documents`,
        column: { type: 'record', source: 'id' },
      },
    ],
    ['a call for a column of the table', { column: { type: 'record', source: 'id, public.called(' } }],
    ['a call in a field', { column: { type: 'text', steps: ["a' || public.called() || 'b"] } }],
    ['a call in the way to an array', { lists: [["a' || public.called() || 'b"]] }],
    ['a call in the way to an object', { at: ["a' || public.called() || 'b"] }],
    ['a call in a type', { column: { type: 'public.called', steps: ['a'] } }],
    [
      'a call in a time zone',
      { zone: "UTC' || public.called() || '", column: { type: 'timestamptz', steps: [] } },
    ],
    ['a statement in a comment', { comment: `'; ${replaced}; comment on view fields.mine is '` }],
    ['a statement in the comment of a column', { column: { comment: `'; ${replaced}; select '` } }],
  ])('as a shape with %s can only make a projection', async (_, { column = {}, ...odd }: Odd) => {
    await rows(
      `create or replace function public.called() returns text language sql as $$ select 'called' $$`,
    );
    await rows('create or replace view fields.mine as select null as mine');
    const before = await definitions('^mine$');
    const writer = await loginAs('metersync_writer', warehouse);
    const columns = [{ name: 'odd', type: 'text', steps: [], comment: '', ...column }];
    const rest = { name: 'odd', table: 'documents', zone: 'UTC', comment: '', lists: [], at: [] };
    await writer.db
      .execute(sql`select metersync.make_typed_view(${JSON.stringify({ ...rest, columns, ...odd })}, false)`)
      .catch(() => {});
    expect(await definitions('^mine$')).toEqual(before);
    const calls = await rows(`select from pg_depend where refobjid = 'public.called()'::regprocedure`);
    expect(calls).toEqual([]);
    await rows('drop view if exists fields.odd, fields.mine');
    await rows('drop function public.called()');
  });

  test('that was deleted leaves each view its name', async () => {
    const before = await definitions('documents');
    await rows(`delete from metersync.typed_views; delete from metersync.typed_columns`);
    await migrateWarehouse(warehouse.db);
    expect((await definitions('documents')).map(({ viewname }) => viewname)).toEqual(
      before.map(({ viewname }) => viewname),
    );
    expect(await contents()).toEqual(expected);
  });

  test('of any content fails no migration and loses no value of the views', async () => {
    const text = fc.oneof(
      fc.constantFrom(
        'documents',
        'documents_lines',
        'bills',
        'sites',
        '',
        '/',
        '/*',
        '/lines/*',
        '/amount',
        'text',
        'evil',
        'id',
      ),
      fc.string({ unit: anyCharacter, maxLength: 80 }).map((any) => any.replaceAll('\0', '').toWellFormed()),
    );
    const view = fc.record({ name: text, resource: fc.oneof(fc.constant('documents'), text), path: text });
    const column = fc.record({ view: text, position: fc.nat(2_000), name: text, path: text, type: text });
    await fc.assert(
      fc.asyncProperty(
        fc.array(view, { maxLength: 5 }),
        fc.array(column, { maxLength: 8 }),
        async (views, columns) => {
          for (const { name, resource, path } of views)
            await warehouse.db
              .execute(sql`insert into metersync.typed_views (name, resource, path, definition)
            values (${name}, ${resource}, ${path}, 'any') on conflict (name) do update set path = excluded.path
            where not exists (select from metersync.typed_views o where (o.resource, o.path) = (excluded.resource, excluded.path))
              and typed_views.name not in ('documents', 'documents_lines')`)
              .catch(() => {});
          for (const { view: of, position, name, path, type } of columns)
            await warehouse.db.execute(sql`insert into metersync.typed_columns (view_name, position, name, path, type)
            values (${of}, ${position}, ${name}, ${path}, ${type}) on conflict do nothing`);
          await migrateWarehouse(warehouse.db);
          expect(await contents()).toEqual(expected);
          expect(await rows('select from analytics.bills')).toBeDefined();
        },
      ),
      { numRuns: cases(8, 25) },
    );
  });
});

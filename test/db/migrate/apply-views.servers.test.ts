import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sqlMessage } from '../../../db/connection/failures.ts';
import { applyTypedViews } from '../../../db/fields/typed-views.ts';
import { migrateWarehouse } from '../../../db/migrate/migrate.ts';
import { keepMonths } from '../../../db/watch/months.ts';
import { createWarehouse } from '../../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
beforeEach(async () => {
  warehouse = await createWarehouse();
});
afterEach(() => warehouse.drop());

const run = (text: string) => warehouse.db.execute(sql.raw(text));
/** Makes the views look like those of an earlier version, so that a migration applies them again. */
const fromEarlierVersion = () => run(`update metersync_migrations.views set version = 'earlier'`);

async function columnsOf(view: string): Promise<unknown[]> {
  const { rows } =
    await run(`select attname as name from pg_attribute where attrelid = '${view}'::regclass and attnum > 0
    order by attnum`);
  return rows.map(({ name }) => name);
}

test("replaces views and their comments, calls no user's function, and recomputes the months that views kept", async () => {
  await run('create view public.mine as select bill_id, month from analytics.bills, analytics.monthly_cost');
  // The comment of this column comes from the common comments.
  const comment = async () =>
    (
      await run(`select col_description('analytics.monthly_cost'::regclass, attnum) as comment from pg_attribute
      where attrelid = 'analytics.monthly_cost'::regclass and attname = 'month'`)
    ).rows[0]?.comment;
  const now = await comment();
  await run(`comment on column analytics.monthly_cost.month is 'of an earlier version'`);
  const better = 'public.generate_series(timestamp, date, interval)';
  await run(`create function ${better} returns setof timestamp language sql as 'select $1'`);
  await run('delete from metersync.company_changes');
  await run('insert into metersync.company_changes (company_id, is_kept) values (gen_random_uuid(), true)');
  const keep = () => keepMonths(warehouse.db, { budgetSeconds: 60 });
  expect(await keep()).toBe(0);

  await fromEarlierVersion();
  await migrateWarehouse(warehouse.db);
  expect((await run('select * from public.mine')).rows).toEqual([]);
  expect(await comment()).toBe(now);
  expect(await keep()).toBe(1);
  // Postgres would refuse to drop a function that a view uses.
  await run(`drop function ${better}`);
});

test('drops and recreates views with changed columns', async () => {
  const views = ['analytics.bills_all', 'analytics.bills', 'analytics.monthly_cost', 'ops.data_issue_checks'];
  const before = await Promise.all(views.map(columnsOf));
  await run('drop view analytics.bills_all cascade');
  await run('create view analytics.bills_all as select 1 as other, 2 as columns');
  await fromEarlierVersion();
  await migrateWarehouse(warehouse.db);
  expect(await Promise.all(views.map(columnsOf))).toEqual(before);
  expect((await run('select * from analytics.bills_as_of(now())')).rows).toEqual([]);
});

test("keeps grants when columns change, and users' views on unchanged views", async () => {
  const role = `reader_${randomUUID().replaceAll('-', '')}`;
  await run(`create role ${role}`);
  try {
    await run(`grant select on analytics.bills, analytics.monthly_cost to ${role}`);
    await run(`grant select (bill_id) on analytics.bills_all to ${role}`);
    await run('create view public.mine as select bill_id from analytics.bills');
    await run('drop view analytics.emissions_monthly');
    await run('create view analytics.emissions_monthly as select 1 as other');
    await fromEarlierVersion();
    await migrateWarehouse(warehouse.db);
    expect(await columnsOf('analytics.emissions_monthly')).toContain('company_id');
    expect((await run('select * from public.mine')).rows).toEqual([]);
    const may = (privilege: string) => `${privilege} as may`;
    for (const view of ['analytics.bills', 'analytics.monthly_cost'])
      expect(
        (await run(`select ${may(`has_table_privilege('${role}', '${view}', 'select')`)}`)).rows,
      ).toEqual([{ may: true }]);
    const column = `has_column_privilege('${role}', 'analytics.bills_all', 'bill_id', 'select')`;
    expect((await run(`select ${may(column)}`)).rows).toEqual([{ may: true }]);
  } finally {
    await run(`drop owned by ${role}`);
    await run(`drop role ${role}`);
  }
});

test("names a user's view that blocks a change, and changes nothing", async () => {
  await run('drop view analytics.monthly_by_site');
  await run('create view analytics.monthly_by_site as select 1 as other');
  await run('create view public.mine as select other from analytics.monthly_by_site');
  await fromEarlierVersion();
  expect(await migrateWarehouse(warehouse.db).catch(sqlMessage)).toMatch(
    /^views of yours .*drop them, run metersync migrate.*: view public.mine depends on view analytics.monthly_by_site$/,
  );
  expect(await columnsOf('analytics.monthly_by_site')).toEqual(['other']);
  await run('drop view public.mine');
  await migrateWarehouse(warehouse.db);
  expect(await columnsOf('analytics.monthly_by_site')).toContain('currency');
});

test("recreates typed views with their grants, and names only a user's view on a typed view as an obstacle", async () => {
  await run('drop function metersync.numeric_of(jsonb) cascade');
  await run(
    "create function metersync.numeric_of(value jsonb) returns text language sql as 'select value::text'",
  );
  await run(`insert into metersync.field_catalogue (resource, api_version, path, types)
    values ('documents', 'v2.2', '', '{object}'), ('documents', 'v2.2', '/amount', '{number}')`);
  await applyTypedViews(warehouse.db);
  await run('grant select on fields.documents to public');
  await run('create view public.mine as select amount from fields.documents');
  await fromEarlierVersion();
  expect(await migrateWarehouse(warehouse.db).catch(sqlMessage)).toMatch(
    /^views of yours .*: view public.mine depends on view fields.documents$/,
  );
  await run('drop view public.mine');
  await migrateWarehouse(warehouse.db);
  expect(await columnsOf('fields.documents')).toContain('amount');
  const granted = `has_table_privilege('pg_monitor', 'fields.documents', 'select')`;
  expect((await run(`select ${granted} as may`)).rows).toEqual([{ may: true }]);
});

test('keeps the views of a warehouse that a newer version migrated', async () => {
  await run(
    "insert into metersync_migrations.schema_migrations (hash, created_at) values ('of a later one', 9999999999999)",
  );
  await run("update metersync_migrations.views set version = 'later'");
  await expect(migrateWarehouse(warehouse.db)).rejects.toThrow('migrated by a newer metersync');
  expect((await run('select version from metersync_migrations.views')).rows).toEqual([{ version: 'later' }]);
});

test("drops tables of earlier versions unless a user's view depends on one", async () => {
  await run('create table ops.contract_changes (path text)');
  await run('create table metersync.stale_records (kind text)');
  await run('create view public.mine as select path from ops.contract_changes');
  await fromEarlierVersion();
  expect(await migrateWarehouse(warehouse.db).catch(sqlMessage)).toBe(
    'views of yours were built on views that are gone, see Removed in CHANGELOG.md: drop them, run metersync migrate, and make them again. view public.mine depends on table ops.contract_changes',
  );
  await run('drop view public.mine');
  await migrateWarehouse(warehouse.db);
  const { rows } = await run(`select to_regclass('ops.contract_changes') as changes,
    to_regclass('metersync.stale_records') as stale`);
  expect(rows).toEqual([{ changes: null, stale: null }]);
});

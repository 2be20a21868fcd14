import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import type { Database } from '../../../db/connection/connect.ts';
import { sqlMessage } from '../../../db/connection/failures.ts';
import { migrateWarehouse } from '../../../db/migrate/migrate.ts';
import { planMigration } from '../../../db/migrate/migrations.ts';
import { runCommand } from '../../support/command.ts';
import { warehouseOf02 } from '../../support/migrations.ts';

const tables = ['companies', 'connections', 'documents', 'meters', 'sites', 'usage_data'] as const;

/** Records with a value in each column, and two changes of each. */
const records = [
  sql`insert into utility.companies (id, external_id, public_id, name, raw, api_version, synced_at)
    select md5('company ' || n)::uuid, 'external', 'public', 'Company ' || n, '{"n": 0}', 'v2', now()
    from generate_series(1, 20) n`,
  sql`insert into utility.sites (id, company_id, name, raw, api_version, synced_at)
    select md5('company ' || n)::uuid, md5('company ' || n)::uuid, 'Site ' || n, '{"n": 0}', 'v2', now()
    from generate_series(1, 20) n`,
  sql`insert into utility.connections
      (id, company_id, external_id, datasource, status, url, created, updated, raw_updated, raw, api_version, synced_at)
    select md5('connection ' || n)::uuid, md5('company ' || n)::uuid, 'external', 'City Power', 'VALID', 'https://…',
      now(), now(), now(), '{"n": 0}', 'v2', now()
    from generate_series(1, 20) n`,
  sql`insert into utility.documents
      (id, company_id, site_id, created, updated, raw_updated, usage_read_at, raw, api_version, synced_at)
    select md5('document ' || n)::uuid, md5('company ' || n)::uuid, md5('site ' || n)::uuid, now(), now(), now(), now(),
      jsonb_build_object('revisedDocumentId', md5('document ' || n + 1)::uuid, 'filler',
        (select jsonb_agg(md5(i::text || n)) from generate_series(1, 300) i)),
      'v2', now()
    from generate_series(1, 20) n`,
  sql`insert into utility.usage_data (id, company_id, document_id, meter_id, start_date, end_date, usage, usage_units,
      created, updated, raw, api_version, synced_at)
    select md5('usage ' || n)::uuid, md5('company ' || n)::uuid, md5('document ' || n)::uuid, 'meter ' || n,
      '2025-01-01', '2025-01-31', n / 3.0, 'kWh', now(), now(),
      '{"isEstimated": true, "exclusion": false, "netMeteringType": "IMPORT", "billedDemand": "1.50"}', 'v2', now()
    from generate_series(1, 20) n`,
  sql`insert into utility.meters (id, company_id, site_id, account_id, datasource_type, raw, api_version, synced_at)
    select 'meter ' || n, md5('company ' || n)::uuid, md5('site ' || n)::uuid, 'account', 'GAS', '{"n": 0}', 'v2', now()
    from generate_series(1, 20) n`,
  ...tables.flatMap((table) => [
    sql`update ${sql.identifier('utility')}.${sql.identifier(table)} set raw = raw || '{"n": 1}'`,
    sql`update ${sql.identifier('utility')}.${sql.identifier(table)}
      set deleted_at = now(), deleted_reason = 'absent', synced_at = now()`,
  ]),
];

/** Creates a warehouse of 0.2.0, in which each resource had a table of earlier states. */
async function earlierWarehouse(): Promise<{ db: Database; url: string }> {
  const { db, url } = await warehouseOf02();
  for (const statement of records) await db.execute(statement);
  return { db, url };
}

const statesIn = async (db: Database) =>
  await Promise.all(
    tables.map(async (table) => {
      const { rows } = await db.execute(
        sql`select * from ${sql.identifier('history')}.${sql.identifier(table)} order by id, valid_to`,
      );
      return rows;
    }),
  );

/** Names and types of the columns of each table or view of history, in their order. */
const columnsIn = async (db: Database) =>
  (
    await db.execute(sql`
      select c.relname, attname, format_type(atttypid, atttypmod)
      from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'history'::regnamespace and c.relkind in ('r', 'v') and attnum > 0
      order by c.relname, attnum`)
  ).rows;

test('an upgrade keeps each earlier state, and the views and rights that users have on history', async () => {
  const { db, url } = await earlierWarehouse();
  await db.execute(sql`
    create view public.mine with (security_barrier) as
    select d.id, d.valid_to, u.usage
    from history.documents d left join history.usage_data u on u.document_id = d.id and u.valid_to = d.valid_to`);
  await db.execute(sql`create view public.of_mine as select count(*)::int as states from public.mine`);
  await db.execute(sql`grant select on public.mine, history.documents to public`);
  await db.execute(sql`grant select (id, valid_to) on history.meters to public`);
  const mine = async () => (await db.execute(sql`select * from public.mine order by id, valid_to`)).rows;
  const [states, columns, seen] = [await statesIn(db), await columnsIn(db), await mine()];
  expect(states.map((rows) => rows.length)).toEqual(tables.map(() => 40));

  await db.execute(sql`analyze`);
  expect((await planMigration(db)).rewrites).toEqual([
    ...tables.map((table) => ({
      table: `history.${table}`,
      rows: 40,
      rowsPerSecond: table === 'documents' ? 5_000 : 15_000,
    })),
    { table: 'metersync.journal', rows: 0, rowsPerSecond: 100_000 },
  ]);
  await db.execute(sql`update pg_class set reltuples = 1000000 where oid = 'history.documents'::regclass`);
  expect(await runCommand(['migrate'], { env: { DATABASE_URL: url } })).toMatchObject({
    status: 0,
    stderr: expect.stringContaining(
      'history.documents is rewritten, with about 1,000,000 rows. This takes up to 3 min',
    ),
  });

  expect(await statesIn(db)).toEqual(states);
  expect(await columnsIn(db)).toEqual(columns);
  expect(await mine()).toEqual(seen);
  const { rows } = await db.execute(sql`
    select
      has_table_privilege('public', 'history.documents', 'select') as documents,
      has_table_privilege('public', 'history.usage_data', 'select') as usage,
      has_column_privilege('public', 'history.meters', 'valid_to', 'select') as meters,
      has_column_privilege('public', 'history.meters', 'raw', 'select') as raw,
      has_table_privilege('public', 'public.mine', 'select') as mine,
      has_table_privilege('metersync_writer', 'history.documents', 'delete') as writer,
      (select reloptions from pg_class where oid = 'public.mine'::regclass) as options,
      (select states from public.of_mine) as states,
      (select count(*)::int from pg_class where relname like 'old\\_%') as left`);
  expect(rows).toEqual([
    {
      documents: true,
      usage: false,
      meters: true,
      raw: false,
      mine: true,
      writer: false,
      options: ['security_barrier=true'],
      states: 40,
      left: 0,
    },
  ]);

  // The next change goes on where the earlier states ended.
  await db.execute(sql`update utility.meters set deleted_at = null, deleted_reason = null`);
  await db.execute(sql`update utility.documents set deleted_at = null, deleted_reason = null`);
  expect(await mine()).toHaveLength(60);
  const { rows: gaps } = await db.execute(sql`
    select from (
      select id::text, valid_from, lag(valid_to) over (partition by id order by valid_to) as ended from history.documents
      union all
      select id, valid_from, lag(valid_to) over (partition by id order by valid_to) from history.meters
    ) states where valid_from <> ended`);
  expect(gaps).toEqual([]);
});

test.each([
  [
    'a materialized view',
    sql`create materialized view public.kept as select id from history.sites`,
    /history\.sites becomes a view, .* drop it, run metersync migrate, and make it again\. materialized view public\.kept depends on table history\.old_sites/,
  ],
  [
    'row security',
    sql`alter table history.meters enable row level security`,
    /history\.meters has row security, which a view cannot have/,
  ],
])('an upgrade names %s on a table of history, and changes nothing', async (_, statement, message) => {
  const { db } = await earlierWarehouse();
  await db.execute(statement);
  const states = await statesIn(db);
  const refused = await migrateWarehouse(db).catch((error: Error) => error);
  expect(sqlMessage(refused)).toMatch(message);
  expect(await statesIn(db)).toEqual(states);
});

import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { recordEvents } from '../../db/events/record.ts';
import { createFieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { applyTypedViews } from '../../db/fields/typed-views.ts';
import { migrateWarehouse } from '../../db/migrate/migrate.ts';
import { readIntervals } from '../../service/intervals.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { loginAs, openTransaction } from '../support/login.ts';
import { writeRecords } from '../support/pages.ts';
import { began, writeReadings } from '../support/readings.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const rows = async (statement: string) => (await warehouse.db.execute(sql.raw(statement))).rows;
const fromEarlierVersion = () => rows(`update metersync_migrations.views set version = 'earlier'`);

let year = 2010;
/** Does everything that the sync does in the warehouse. The readings are of a month without a partition. */
async function sync(): Promise<void> {
  const id = randomUUID();
  await recordEvents(warehouse.db, [delivery(documentEvent('created', id, '2026-05-01T00:00:00.000001'))]);
  await writeRecords(warehouse, 'documents', [{ id, updated: '2026-05-01T00:00:00.000001', note: 'x' }]);
  year += 1;
  const [start, end] = [`${year}-07-01T00:00:00`, `${year}-07-01T00:15:00`];
  const columns = readIntervals(JSON.stringify([{ start, end, usage: '1', usageUnits: 'kWh' }]), null);
  const written = await writeReadings(warehouse, randomUUID(), began(1), columns);
  expect(written).toMatchObject({ inserted: 1 });
  await refreshDataIssues(warehouse.db, [randomUUID()]);
  const errors: unknown[] = [];
  const catalogue = createFieldCatalogue({ db: warehouse.db, onError: (error) => errors.push(error) });
  await catalogue.note('documents', 'v2.2', [{ [`field ${randomUUID()}`]: 1 }]);
  expect(errors).toEqual([]);
}

/** Keys of the advisory locks that any version of metersync has taken. Any login may hold them. */
const advisory = [
  "hashtext('metersync.catch_ups')",
  "hashtext('metersync.ensure_interval_month')",
  "hashtextextended('ops.refresh_data_issues', 0)",
  String(0x6d657465),
  String(0x66696c64),
];

test('a login without a role blocks nothing, even if it holds every advisory lock', async () => {
  const nobody = await loginAs(null, warehouse);
  await openTransaction(
    nobody,
    advisory.map((key) => `select pg_advisory_xact_lock(${key})`),
  );
  await sync();
  await applyTypedViews(warehouse.db);
  await fromEarlierVersion();
  expect(await migrateWarehouse(warehouse.db)).toMatchObject({ views: true });
  const functions = await rows(`select proname from pg_proc where prosrc like '%advisory%'
    and pronamespace in (select oid from pg_namespace where nspname in ('metersync', 'analytics', 'ops', 'utility'))`);
  expect(functions).toEqual([]);
});

const locked = [
  'metersync.events',
  'metersync_migrations.schema_migrations',
  'utility.intervals',
  'utility.documents',
  'ops.data_issues',
  'metersync.data_checks',
];
const modes = ['row share', 'row exclusive', 'share update exclusive', 'share', 'access exclusive'];

test.each([null, 'metersync_analyst'])(
  'a login with the role %s cannot take a lock that others would wait for',
  async (role) => {
    const login = await loginAs(role, warehouse);
    const attempt = (statement: string) =>
      expect(login.db.execute(sql.raw(statement)), statement).rejects.toMatchObject({
        cause: { code: '42501' },
      });
    for (const table of locked) {
      for (const mode of modes)
        await expect(
          login.db.transaction((tx) => tx.execute(sql.raw(`lock table ${table} in ${mode} mode`))),
          `${table} ${mode}`,
        ).rejects.toMatchObject({ cause: { code: '42501' } });
      for (const strength of ['update', 'share', 'key share'])
        await attempt(`select from ${table} for ${strength}`);
    }
  },
);

/** Takes the strongest lock of an analyst, in a transaction that has read everything and does not end. */
async function analystAtWork() {
  const analyst = await loginAs('metersync_analyst', warehouse);
  const readable = await rows(`
    select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('utility', 'analytics', 'fields', 'ops') and c.relkind in ('r', 'p', 'v') and not c.relispartition`);
  const session = await openTransaction(analyst, [
    ...readable.map(({ name }) => `select * from ${name} limit 1`),
    'lock table utility.intervals, utility.documents, analytics.bills in access share mode',
  ]);
  return { ...session, user: analyst.user };
}

test('an analyst whose transaction never ends does not block recording or writing', async () => {
  await analystAtWork();
  await sync();
  await sync();
});

test('a blocked migration names the analyst who blocks it, blocks nobody, and succeeds afterwards', async () => {
  const analyst = await analystAtWork();
  await fromEarlierVersion();
  const waiting = { lockTimeoutFirstMs: 50, lockTimeoutMaxMs: 100, pauseMs: 1, tries: 3 };
  const inUse = new RegExp(`pid ${analyst.pid} \\(${analyst.user}, metersync\\) uses analytics\\..* since 2`);
  await expect(migrateWarehouse(warehouse.db, waiting)).rejects.toThrow(inUse);

  const migrated = migrateWarehouse(warehouse.db, {
    lockTimeoutFirstMs: 50,
    lockTimeoutMaxMs: 200,
    pauseMs: 10,
    tries: 1_000,
  });
  let done = false;
  const ended = migrated.finally(() => {
    done = true;
  });
  onTestFinished(() => void ended.catch(() => {}));
  for (let n = 0; n < 3; n++) await sync();
  expect(done).toBe(false);
  await analyst.end();
  expect(await ended).toMatchObject({ views: true });
});

test('concurrent migrations run one after the other, even on an empty database', async () => {
  await warehouse.db.execute(sql`drop schema metersync_migrations cascade`);
  for (const schema of ['analytics', 'fields', 'history', 'ops', 'utility', 'metersync'])
    await warehouse.db.execute(sql.raw(`drop schema ${schema} cascade`));
  const migrated = await Promise.all([1, 2, 3].map(() => migrateWarehouse(warehouse.db)));
  expect(migrated.filter(({ views }) => views)).toHaveLength(1);
  expect(migrated.filter(({ applied }) => applied > 0)).toHaveLength(1);
});

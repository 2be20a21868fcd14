import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { requireSchema } from '../../../app/schema.ts';
import { readSettings } from '../../../app/settings/settings.ts';
import { connectWarehouse, type Warehouse } from '../../../db/connection/connect.ts';
import { sqlMessage } from '../../../db/connection/failures.ts';
import { migrateWarehouse } from '../../../db/migrate/migrate.ts';
import {
  floorOf,
  knownMigrations,
  planMigration,
  readSchemaVersions,
} from '../../../db/migrate/migrations.ts';
import { alarmTypes } from '../../../health/findings.ts';
import type { Health } from '../../../health/measured.ts';
import { judgeSchema } from '../../../operations/doctor/doctor.ts';
import { healthOf } from '../../../operations/health.ts';
import { describeSchema } from '../../postgres/schema.ts';
import { loginAs, openTransaction } from '../../support/login.ts';
import { laterMigrations, warehouseOf02 } from '../../support/migrations.ts';
import { writeRecords } from '../../support/pages.ts';
import { createWarehouse } from '../../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
/** Creates a warehouse that is dropped after the test, once everything that it opens there is closed. */
async function openWarehouse(): Promise<void> {
  warehouse = await createWarehouse();
  onTestFinished(warehouse.drop);
}

const known = knownMigrations().at(-1)?.number ?? 0;
const floor = floorOf(knownMigrations());
const addsColumn = (floor: number) =>
  `-- floor: ${floor}\nALTER TABLE "utility"."documents" ADD COLUMN "later" text;`;
const waiting = { lockTimeoutFirstMs: 50, lockTimeoutMaxMs: 200, pauseMs: 20, tries: 4 };

test('a migration of a table that an analyst reads gives up, says who reads it, and holds up no writer', async () => {
  await openWarehouse();
  const analyst = await loginAs('metersync_analyst', warehouse);
  const { pid, end } = await openTransaction(analyst, ['select from utility.documents limit 1']);
  const writer = await warehouse.pool.connect();
  onTestFinished(() => writer.release());
  // Longer than the longest wait of the migration, and far shorter than the analyst's transaction.
  await writer.query(`set lock_timeout = '${waiting.lockTimeoutMaxMs * 10}ms'`);

  const folder = laterMigrations(addsColumn(known));
  let error: Error | undefined;
  const migrated = migrateWarehouse(warehouse.db, waiting, folder).catch((refused: Error) => {
    error = refused;
  });
  let writes = 0;
  while (error === undefined) {
    await writer.query('update utility.documents set raw = raw where false');
    writes += 1;
  }
  await migrated;
  expect(sqlMessage(error)).toMatch(
    new RegExp(
      `at each of 4 tries.*pid ${pid} \\(${analyst.user}, metersync\\) uses utility\\.documents.* since 2`,
    ),
  );
  expect(writes).toBeGreaterThan(0);
  expect(await readSchemaVersions(warehouse.db)).toEqual({ known, applied: known, floor });

  await end();
  expect(await migrateWarehouse(warehouse.db, waiting, folder)).toMatchObject({ applied: 1 });
});

test('a plan lists the statements of pending migrations, changes nothing, and is empty if there are none', async () => {
  await openWarehouse();
  expect(await planMigration(warehouse.db)).toMatchObject({ statements: [], floorAfter: floor });
  const folder = laterMigrations(
    `${addsColumn(known)}\n--> statement-breakpoint\nCREATE INDEX "documents_later" ON "utility"."documents" ("later");`,
  );
  expect(await planMigration(warehouse.db, folder)).toEqual({
    versions: { known: known + 1, applied: known, floor },
    floorAfter: known,
    statements: [
      { migration: known + 1, statement: addsColumn(known) },
      {
        migration: known + 1,
        statement: 'CREATE INDEX "documents_later" ON "utility"."documents" ("later");',
      },
    ],
    rewrites: [],
  });
  expect(await readSchemaVersions(warehouse.db)).toEqual({ known, applied: known, floor });
});

test('the views of a newer version stay if that version migrates between the migrations and the views', async () => {
  await openWarehouse();
  await warehouse.db.execute(sql`update metersync_migrations.views set version = 'newer'`);
  const newer = `insert into metersync_migrations.schema_migrations (hash, created_at)
    values ('of a newer version', 9999999999999)`;
  await expect(migrateWarehouse(warehouse.db, waiting, laterMigrations(newer))).rejects.toThrow(
    'migrated by a newer metersync',
  );
  const { rows } = await warehouse.db.execute(sql`select version from metersync_migrations.views`);
  expect(rows).toEqual([{ version: 'newer' }]);
});

test('an upgrade from 0.2.0 ends in the schema of a new warehouse', async () => {
  await openWarehouse();
  const older = await warehouseOf02();
  expect((await reportsOn(older)).refused).toMatch('the warehouse lacks 1 migration');
  expect(await migrateWarehouse(older.db)).toMatchObject({ applied: 1, views: true });
  expect(await readSchemaVersions(older.db)).toEqual({ known, applied: known, floor });
  expect(await describeSchema(older.db)).toEqual(await describeSchema(warehouse.db));
  const factors = sql`select * from ops.unit_factors order by units, datasource_type`;
  expect((await older.db.execute(factors)).rows).toEqual((await warehouse.db.execute(factors)).rows);
  expect(await reportsOn(older)).toMatchObject({ refused: undefined, warnings: [], alarm: undefined });
});

test.each([
  ['of 0.1.0', 1, [], /0\.1\.0, which .* upgrade it to 0\.2\.0 first.* migrate of version 0\.2\.0/],
  ['between 0.1.0 and 0.2.0', 3, [], /was not released: load a new warehouse/],
  ['after 0.2.0', 4, [1_796_080_000_000], /was not released: load a new warehouse/],
] as const)('a warehouse %s is refused, and the message says what to do', async (_, count, more, refusal) => {
  const older = await warehouseOf02(count);
  for (const madeAt of more)
    await older.db.execute(sql`
      insert into metersync_migrations.schema_migrations (hash, created_at) values ('unreleased', ${madeAt})`);
  expect((await reportsOn(older)).refused).toMatch('lacks');
  await expect(planMigration(older.db)).rejects.toThrow(refusal);
  await expect(migrateWarehouse(older.db)).rejects.toThrow(refusal);
});

const reports = () => reportsOn(warehouse);

/** Returns what the current code reports about a warehouse. */
async function reportsOn(warehouse: Pick<Warehouse, 'db'> & { readonly url: string }) {
  const lines: string[] = [];
  const log = pino(new Writable({ write: (line, _, done) => done(void lines.push(String(line))) }));
  const settings = readSettings({});
  const refused = await requireSchema(settings, warehouse.url, log).then(
    () => undefined,
    (error: Error) => error.message,
  );
  const read = healthOf({ settings, databaseUrl: warehouse.url, temporal: undefined });
  const health: Health = await read(warehouse.db);
  const { state } = judgeSchema(await readSchemaVersions(warehouse.db));
  const [alarm] = alarmTypes.SchemaMismatch.judge?.(health) ?? [];
  return { refused, warnings: lines.map((line) => JSON.parse(line).msg), health, state, alarm };
}

test('a migration ignores the time limits of its role, and calls no function of the schema public', async () => {
  await openWarehouse();
  // Postgres has a limit for whole transactions since version 17.
  const limits = `select name, setting from pg_settings
    where name in ('statement_timeout', 'transaction_timeout')`;
  const { rows: there } = await warehouse.db.execute<{ name: string }>(sql.raw(limits));
  const url = new URL(warehouse.url);
  url.searchParams.set('options', there.map(({ name }) => `-c ${name}=600000`).join(' '));
  const limited = connectWarehouse({ url: url.href, timeZone: 'UTC', max: 1, onError: () => {} });
  onTestFinished(() => limited.close());
  const better = 'public.generate_series(timestamp, date, interval)';
  await warehouse.db.execute(
    sql.raw(`create function ${better} returns setof timestamp language sql as 'select $1'`),
  );
  const called = `generate_series(now()::timestamp, now()::date, '1 day')`;
  const notes = `create table utility.later as ${limits};
    create view utility.calls as select ${called};`;
  await migrateWarehouse(limited.db, waiting, laterMigrations(notes));
  const set = (setting: string) => there.map(({ name }) => ({ name, setting }));
  expect((await limited.db.execute(sql`table utility.later`)).rows).toEqual(set('0'));
  expect((await limited.db.execute(sql.raw(limits))).rows).toEqual(set('600000'));
  // Postgres would refuse to drop a function that a view uses.
  await warehouse.db.execute(sql.raw(`drop function ${better}`));
});

test('code between the floor and the newest migration of the schema works, and warns that it must be upgraded', async () => {
  await openWarehouse();
  await migrateWarehouse(warehouse.db, waiting, laterMigrations(addsColumn(known)));
  const { refused, warnings, health, state, alarm } = await reports();
  const saw =
    'the warehouse has 1 migration that this metersync does not know, and accepts the writes of this metersync';
  expect(refused).toBeUndefined();
  expect(warnings).toEqual([`${saw}. Upgrade this metersync.`]);
  expect(health.schema).toEqual({ known, applied: known + 1, floor: known });
  expect(health.warehouse).not.toHaveProperty('away');
  expect(state).toBe('warn');
  expect(alarm?.saw).toContain(saw);
  await writeRecords(warehouse, 'documents', [
    { id: randomUUID(), updated: '2026-05-01T00:00:00.000001', note: 'x' },
  ]);
  await expect(migrateWarehouse(warehouse.db)).rejects.toThrow('migrated by a newer metersync');
});

test.each([
  ['that names itself as the floor', addsColumn(known + 1)],
  ['that names no floor', 'ALTER TABLE "utility"."documents" ADD COLUMN "later" text;'],
])('code that is older than the floor of a migration %s is refused with a message', async (_, text) => {
  await openWarehouse();
  // A later migration cannot lower the floor.
  await migrateWarehouse(warehouse.db, waiting, laterMigrations(text, `-- floor: ${known}\nselect 1;`));
  const { refused, warnings, health, state, alarm } = await reports();
  const saw = `the warehouse has 2 migrations that this metersync does not know: code that writes to it has to know ${known + 1} migrations, and this metersync knows ${known}`;
  expect(refused).toMatch(`${saw}: upgrade this metersync`);
  expect(warnings).toEqual([]);
  expect(health.warehouse).toMatchObject({ away: saw });
  expect(state).toBe('fail');
  expect(alarm?.saw).toContain(saw);
});

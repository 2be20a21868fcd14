import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { applyViews } from './apply-views.ts';
import type { Database, Executor, Transaction } from './connect.ts';
import { sqlState } from './failures.ts';
import { type RefreshedViews, refreshViewsIn } from './fields/refresh-views.ts';
import { lock } from './locks.ts';
import { migrations, migrationsSchema, migrationsTable } from './migrations-table.ts';
import { packagedFolder } from './packaged-folder.ts';
import { describeSessions, sessionsAtWork } from './read/sessions.ts';
import { ensureRoles } from './roles.ts';
import { compressRecords } from './schema/compress-raw.ts';

export const newerSchema =
  'the warehouse was migrated by a newer metersync: upgrade this one (or by one before 0.1.0: load a new warehouse)';

/**
 * How long a migration waits for tables that others use, which also delays their new users; and how
 * many times.
 */
export interface Patience {
  readonly lockTimeoutMs: number;
  readonly pauseMs: number;
  readonly tries: number;
}
const patience: Patience = { lockTimeoutMs: 3_000, pauseMs: 2_000, tries: 6 };

/** The result of a migration. */
export interface Migrated extends Pick<RefreshedViews, 'blocked' | 'warnings'> {
  readonly applied: number;
  readonly views: boolean;
  readonly rolesMissing: readonly string[];
}

/**
 * Brings schema, views and grants up to date. Several processes may call it at once.
 * @throws Error when the warehouse is newer than the code, which would replace newer views; and one
 * that names the sessions that keep using what has to be changed
 */
export async function migrateWarehouse(
  db: Database,
  waiting: Patience = patience,
): Promise<Migrated> {
  const before = await appliedMigrations(db);
  await ensureMigrationsTable(db);
  await waitingShortly(db, waiting, async (tx) => {
    await lock(tx, 'migrations', 'inTurn');
    if ((await missingMigrations(tx)) < 0) throw new Error(newerSchema);
    await migrate(tx as unknown as Database, {
      migrationsFolder: packagedFolder('db/migrations'),
      migrationsSchema,
      migrationsTable,
    });
  });
  // The migrator commits the transaction that it is given: the rest needs one of its own.
  const rest = await waitingShortly(db, waiting, async (tx) => {
    await lock(tx, 'migrations', 'inTurn');
    await compressRecords(tx);
    const views = await applyViews(tx);
    const { blocked, warnings } = await refreshViewsIn(tx);
    return { views, blocked, warnings, rolesMissing: await ensureRoles(tx) };
  });
  return { applied: (await appliedMigrations(db)) - before, ...rest };
}

const waitedTooLong: readonly (string | undefined)[] = ['55P03', '40P01'];
const madeMeanwhile: readonly (string | undefined)[] = ['23505', '42P06', '42P07'];

/**
 * Creates the migrator's table, which is locked before the migrator runs. Two processes that create
 * it at once meet here.
 */
async function ensureMigrationsTable(db: Database): Promise<void> {
  try {
    if (await hasMigrations(db)) return;
    await db.execute(sql`create schema if not exists ${sql.identifier(migrationsSchema)}`);
    await db.execute(sql`
      create table if not exists ${migrations} (
        id serial primary key,
        hash text not null,
        created_at bigint
      )`);
  } catch (error) {
    if (!madeMeanwhile.includes(sqlState(error))) throw error;
    await ensureMigrationsTable(db);
  }
}

/**
 * Runs work with short waits for locks, several times. A waiting lock blocks all that come after
 * it, readers and writers. An analyst's open transaction must not stop the recording of events
 * through a migration that waits for it.
 */
async function waitingShortly<T>(
  db: Database,
  { lockTimeoutMs, pauseMs, tries }: Patience,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await db.transaction(async (tx) => {
        await tx.execute(sql`select set_config('lock_timeout', ${String(lockTimeoutMs)}, true)`);
        return await work(tx);
      });
    } catch (error) {
      if (!waitedTooLong.includes(sqlState(error))) throw error;
      if (attempt === tries)
        throw new Error(inUse(await sessionsAtWork(db), attempt), { cause: error });
    }
    await delay(pauseMs);
  }
}

function inUse(sessions: Parameters<typeof describeSessions>[0], attempts: number): string {
  const who =
    sessions.length === 0
      ? 'They have ended by now: run metersync migrate again.'
      : `Let them finish, or end one with "select pg_terminate_backend(PID)", then run metersync migrate again. ${describeSessions(sessions)}`;
  return `other sessions use what has to be changed, and did so at each of ${attempts} tries. ${who}`;
}

/** Whether the migrator's table exists. */
async function hasMigrations(db: Executor): Promise<boolean> {
  const table = `${migrationsSchema}.${migrationsTable}`;
  const { rows } = await db.execute<{ there: boolean }>(
    sql`select to_regclass(${table}) is not null as there`,
  );
  return rows[0]?.there ?? false;
}

/** Counts the migrations that the warehouse lacks; negative when it is newer than the code. */
export async function missingMigrations(db: Executor): Promise<number> {
  const shipped = readMigrationFiles({ migrationsFolder: packagedFolder('db/migrations') }).length;
  return shipped - (await appliedMigrations(db));
}

async function appliedMigrations(db: Executor): Promise<number> {
  if (!(await hasMigrations(db))) return 0;
  const counted = await db.execute<{ count: number }>(
    sql`select count(*)::int as count from ${migrations}`,
  );
  return counted.rows[0]?.count ?? 0;
}

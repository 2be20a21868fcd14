import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { compressRecords } from './compress-raw.ts';
import type { Database, Executor, Transaction } from './connect.ts';
import { sqlState } from './failures.ts';
import { type RefreshedViews, refreshViewsIn } from './fields/refresh-views.ts';
import { lock } from './locks.ts';
import { packagedFolder } from './packaged-folder.ts';
import { describeSessions, sessionsAtWork } from './read/sessions.ts';
import { ensureRoles } from './roles.ts';
import { applyViews } from './views.ts';

const migrationsTable = 'schema_migrations';

export const newerSchema = 'the warehouse was migrated by a newer metersync: upgrade this one';

/** How long a migration waits for tables that others use, and keeps new users of them waiting; and how often. */
export interface Patience {
  readonly lockTimeoutMs: number;
  readonly pauseMs: number;
  readonly tries: number;
}
const patience: Patience = { lockTimeoutMs: 3_000, pauseMs: 2_000, tries: 6 };

/** What a migration led to. */
export interface Migrated extends Pick<RefreshedViews, 'blocked' | 'warnings'> {
  readonly applied: number;
  readonly views: boolean;
  readonly rolesMissing: readonly string[];
}

/**
 * Brings schema, views and what the roles may do up to date. Safe to call from several processes at once.
 * @throws Error when the warehouse is newer than the code, whose older views would take the place of its own; and one
 * that names the sessions that use what has to be changed, when they go on for long
 */
export async function migrateWarehouse(db: Database, waiting: Patience = patience): Promise<Migrated> {
  const before = await appliedMigrations(db);
  await ensureMigrationsTable(db);
  await waitingShortly(db, waiting, async (tx) => {
    await lock(tx, 'migrations', 'inTurn');
    if ((await missingMigrations(tx)) < 0) throw new Error(newerSchema);
    await migrate(tx as unknown as Database, {
      migrationsFolder: packagedFolder('migrations'),
      migrationsSchema: 'metersync_migrations',
      migrationsTable,
    });
  });
  // The migrator commits the transaction that it is given: the rest takes one of its own.
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

/** The table that the migrator itself would make, which is locked before. Two who make it at once meet here. */
async function ensureMigrationsTable(db: Database): Promise<void> {
  const table = `metersync_migrations.${migrationsTable}`;
  try {
    if (await isThere(db, table)) return;
    await db.execute(sql`create schema if not exists metersync_migrations`);
    await db.execute(
      sql.raw(
        `create table if not exists ${table} (id serial primary key, hash text not null, created_at bigint)`,
      ),
    );
  } catch (error) {
    if (!madeMeanwhile.includes(sqlState(error))) throw error;
    await ensureMigrationsTable(db);
  }
}

/**
 * Whoever waits for a table keeps all waiting that come after, readers and writers: an analyst's open transaction must
 * not stop the recording of events through a migration that waits for it. So each wait is short, and tried again.
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
      if (attempt === tries) throw new Error(inUse(await sessionsAtWork(db), attempt), { cause: error });
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

async function isThere(db: Executor, relation: string): Promise<boolean> {
  const { rows } = await db.execute<{ there: boolean }>(
    sql`select to_regclass(${relation}) is not null as there`,
  );
  return rows[0]?.there ?? false;
}

/** How many migrations the code has that the warehouse lacks; negative when the warehouse is newer than the code. */
export async function missingMigrations(db: Executor): Promise<number> {
  const known = readMigrationFiles({ migrationsFolder: packagedFolder('migrations') }).length;
  return known - (await appliedMigrations(db));
}

async function appliedMigrations(db: Executor): Promise<number> {
  if (!(await isThere(db, `metersync_migrations.${migrationsTable}`))) return 0;
  const counted = await db.execute<{ count: number }>(
    sql`select count(*)::int as count from metersync_migrations.schema_migrations`,
  );
  return counted.rows[0]?.count ?? 0;
}

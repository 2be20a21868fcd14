import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { serverWaits } from '../../contract/retry-policy.ts';
import {
  type Database,
  type Executor,
  lock,
  type Transaction,
  withTransaction,
} from '../connection/connect.ts';
import { sqlState } from '../connection/failures.ts';
import { describeSessions, sessionsAtWork } from '../connection/session.ts';
import { type AppliedTypedViews, applyTypedViewsIn } from '../fields/typed-views.ts';
import { metersync } from '../schema/metersync.ts';
import { utility } from '../schema/utility.ts';
import { applyViews, grantAgain } from './apply-views.ts';
import {
  floorOf,
  floors,
  hasMigrations,
  type KnownMigration,
  knownMigrations,
  migrations,
  migrationsFolder,
  migrationsSchema,
  missingMigrations,
} from './migrations.ts';
import { ensureRoles, type Ungranted } from './roles.ts';

/**
 * How long and how often a migration waits for tables in use, which also delays their new users.
 * Each wait is twice as long as the wait before, because most locks last milliseconds.
 */
interface Patience {
  readonly lockTimeoutFirstMs: number;
  readonly lockTimeoutMaxMs: number;
  readonly pauseMs: number;
  readonly tries: number;
}

/** The result of a migration. */
export interface Migrated extends Pick<AppliedTypedViews, 'blocked'>, Ungranted {
  readonly applied: number;
  readonly views: boolean;
}

/**
 * Brings schema, views and grants up to date. Several processes may call it at the same time.
 * @throws Error if the warehouse is newer than the code, or sessions keep using what has to change
 */
export async function migrateWarehouse(
  db: Database,
  waiting: Patience = serverWaits.migration,
  folder: string = migrationsFolder,
): Promise<Migrated> {
  await ensureMigrationsTable(db);
  const applied = await waitingShortly(db, waiting, async (tx) => {
    const missing = await takeTurn(tx, folder);
    for (const migration of missing) await apply(tx, migration);
    await writeFloor(tx, floorOf(knownMigrations(folder)));
    return missing.length;
  });
  // In a transaction of its own, so that nobody waits for changed tables until the views are there.
  const rest = await waitingShortly(db, waiting, async (tx) => {
    await takeTurn(tx, folder);
    await compressRecords(tx);
    const { views, grants } = await applyViews(tx);
    const { blocked } = await applyTypedViewsIn(tx);
    await grantAgain(tx, grants);
    return { views, blocked, ...(await ensureRoles(tx)) };
  });
  return { applied, ...rest };
}

/**
 * Waits for its turn among migrations; returns what the warehouse lacks.
 * @throws Error when this code cannot migrate the warehouse
 */
async function takeTurn(tx: Transaction, folder: string): Promise<readonly KnownMigration[]> {
  await lock(tx, migrations);
  return await missingMigrations(tx, folder);
}

/** Runs a migration and notes it. */
async function apply(tx: Transaction, { statements, hash, madeAt }: KnownMigration): Promise<void> {
  for (const statement of statements) await tx.execute(sql.raw(statement));
  await tx.execute(sql`insert into ${migrations} (hash, created_at) values (${hash}, ${madeAt})`);
}

const waitedTooLong: readonly (string | undefined)[] = ['55P03', '40P01'];
const madeMeanwhile: readonly (string | undefined)[] = ['23505', '42710', '42P06', '42P07'];

/**
 * Creates the table of applied migrations, which each migration locks. If two processes create it at
 * the same time, the slower one fails, tries again and finds it.
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
 * Runs work with short waits for locks, several times if necessary. A waiting lock blocks all
 * readers and writers that come after it: if a migration waited for an analyst's open transaction,
 * events could not be recorded. Statements may take as long as a large table needs, whatever limit
 * the role has.
 */
async function waitingShortly<T>(
  db: Database,
  { lockTimeoutFirstMs, lockTimeoutMaxMs, pauseMs, tries }: Patience,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const lockTimeoutMs = Math.min(lockTimeoutFirstMs * 2 ** (attempt - 1), lockTimeoutMaxMs);
    try {
      return await withTransaction(db, async (tx) => {
        await tx.execute(sql`
          select set_config(
            name,
            case name when 'lock_timeout' then ${lockTimeoutMs}::text else '0' end,
            true
          )
          from pg_settings
          where name in ('lock_timeout', 'statement_timeout', 'transaction_timeout')`);
        return await work(tx);
      });
    } catch (error) {
      if (!waitedTooLong.includes(sqlState(error))) throw error;
      // It has no cause, because the cause's message would be printed instead of this message.
      if (attempt === tries) throw new Error(inUse(await sessionsAtWork(db), attempt));
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

/** Notes the oldest code that may write, in the transaction of the migrations that require it. */
async function writeFloor(tx: Executor, floor: number): Promise<void> {
  await tx.execute(sql`create table if not exists ${floors} (floor integer not null)`);
  await tx.execute(sql`delete from ${floors}`);
  await tx.execute(sql`insert into ${floors} values (${floor})`);
}

type Method = 'lz4' | 'pglz';

/**
 * Sets the compression method of records if Postgres was built with it; returns the changed
 * columns. lz4 takes a fraction of the time of pglz. Stored values do not change.
 */
export async function compressRecords(tx: Executor, method: Method = 'lz4'): Promise<string[]> {
  const { rows } = await tx.execute<{ relation: string }>(sql`
    select c.oid::regclass::text as relation
    from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
      join pg_attribute a on a.attrelid = c.oid
    where n.nspname in (${utility.schemaName}, ${metersync.schemaName})
      and c.relkind = 'r'
      and a.attname = 'raw'
      and not a.attisdropped
      and a.attcompression <> ${method[0]}
      and exists (
        select from pg_settings
        where name = 'default_toast_compression' and ${method} = any(enumvals)
      )
    order by relation`);
  for (const { relation } of rows)
    await tx.execute(sql.raw(`alter table ${relation} alter column raw set compression ${method}`));
  return rows.map(({ relation }) => `${relation}.raw`);
}

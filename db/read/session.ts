import { sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';

/** Reads the server's version, and its clock as Unix milliseconds; NaN without an answer. */
export async function readServer(db: Executor): Promise<{ version: string; nowMs: number }> {
  const { rows } = await db.execute<{ version: string; now_ms: number }>(sql`
    select current_setting('server_version') as version,
      extract(epoch from clock_timestamp())::float8 * 1000 as now_ms`);
  return { version: rows[0]?.version ?? 'unknown', nowMs: rows[0]?.now_ms ?? Number.NaN };
}

/** Reads a setting of the session; '' without an answer. */
export async function readSetting(
  db: Executor,
  name: 'TimeZone' | 'default_transaction_isolation' | 'search_path',
): Promise<string> {
  const { rows } = await db.execute<{ value: string }>(
    sql`select current_setting(${name}) as value`,
  );
  return rows[0]?.value ?? '';
}

/**
 * Reads whether Postgres takes no writes: it is a standby, or somebody set it to only read, as managed
 * servers do whose disk is full. What the session itself asked for does not count.
 */
export async function readsOnly(db: Executor): Promise<boolean> {
  const { rows } = await db.execute<{ only: boolean }>(sql`
    select pg_is_in_recovery() or exists (
        select from pg_settings
        where name = 'default_transaction_read_only' and setting = 'on' and source <> 'client'
      ) as only`);
  return rows[0]?.only ?? false;
}

/** How far behind its primary a standby is. */
export interface Standby {
  /** Whether it gets changes now; otherwise it does not know how far behind it is. */
  readonly receives: boolean;
  /** Seconds since the last change that it shows was committed; 0 if it shows all that it got. */
  readonly behindSeconds: number | null;
}

/** Reads how far behind the server is; undefined if it is no standby. */
export async function readStandby(db: Executor): Promise<Standby | undefined> {
  const { rows } = await db.execute<{
    standby: boolean;
    receives: boolean;
    behind: number | null;
  }>(sql`
    select pg_is_in_recovery() as standby,
      exists (select from pg_stat_wal_receiver) as receives,
      case
        when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then 0
        else extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8
      end as behind`);
  const [row] = rows;
  if (!row?.standby) return undefined;
  return { receives: row.receives, behindSeconds: row.behind };
}

/** A replica, as the primary sees it. */
export interface Replica {
  readonly name: string;
  readonly state: string;
  readonly behindBytes: number;
  /** Seconds by which it showed the last change later; 0 if none came lately. */
  readonly behindSeconds: number;
}

/** Lists the replicas of the server; none where the role may not see them, as pg_monitor may. */
export async function readReplicas(db: Executor): Promise<Replica[]> {
  const { rows } = await db.execute<Replica & Record<string, unknown>>(sql`
    select application_name as name, state,
      pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::float8 as "behindBytes",
      extract(epoch from coalesce(replay_lag, '0'))::float8 as "behindSeconds"
    from pg_stat_replication
    where replay_lsn is not null
    order by application_name, pid`);
  return rows;
}

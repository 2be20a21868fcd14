import { sql } from 'drizzle-orm';
import type { Executor } from './connect.ts';

/** Reads the server's version, and its clock as Unix milliseconds; NaN without an answer. */
export async function readServer(db: Executor): Promise<{ version: string; nowMs: number }> {
  const { rows } = await db.execute<{ version: string; nowMs: number }>(sql`
    select current_setting('server_version') as version,
      extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs"`);
  return rows[0] ?? { version: 'unknown', nowMs: Number.NaN };
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
 * Reads whether Postgres accepts no writes, as a standby or because it was set to read only, as
 * managed servers do when their disk is full. A session's own read-only mode does not count.
 */
export async function readsOnly(db: Executor): Promise<boolean> {
  const { rows } = await db.execute<{ only: boolean }>(sql`
    select pg_is_in_recovery() or bool_or(setting = 'on' and source <> 'client') as only
    from pg_settings
    where name = 'default_transaction_read_only'`);
  return rows[0]?.only ?? false;
}

/** Another session that uses relations of the warehouse in an open transaction. */
type Session = {
  readonly pid: number;
  readonly login: string;
  readonly application: string;
  /** When its transaction began; null if this login may not see that. */
  readonly since: string | null;
  readonly relations: readonly string[];
};

/** Lists sessions that use relations of the warehouse, the oldest transactions first. */
export async function sessionsAtWork(db: Executor): Promise<Session[]> {
  const { rows } = await db.execute<Session>(sql`
    select
      a.pid,
      a.usename as login,
      coalesce(a.application_name, '') as application,
      a.xact_start as since,
      array_agg(distinct n.nspname || '.' || c.relname order by n.nspname || '.' || c.relname)
        as relations
    from pg_locks l
      join pg_class c on c.oid = l.relation
      join pg_namespace n on n.oid = c.relnamespace
      join pg_stat_activity a on a.pid = l.pid
    where l.granted
      and l.locktype = 'relation'
      and l.pid <> pg_backend_pid()
      and c.relkind in ('r', 'p', 'v')
      and l.database = (select oid from pg_database where datname = current_database())
      and n.nspname in (
        'utility', 'history', 'analytics', 'fields', 'ops', 'metersync', 'metersync_migrations'
      )
    group by a.pid, a.usename, a.application_name, a.xact_start
    order by a.xact_start nulls last, a.pid`);
  return rows;
}

const [sessionsMax, relationsMax] = [5, 3];

/** Describes the oldest sessions in a sentence. */
export function describeSessions(sessions: readonly Session[]): string {
  const lines = sessions
    .slice(0, sessionsMax)
    .map(({ pid, login, application, since, relations }) => {
      const more =
        relations.length > relationsMax ? ` and ${relations.length - relationsMax} more` : '';
      const of = [login, application].filter((name) => name !== '').join(', ');
      const used = `${relations.slice(0, relationsMax).join(', ')}${more}`;
      return `pid ${pid} (${of}) uses ${used}${since === null ? '' : ` since ${since}`}`;
    });
  if (sessions.length > sessionsMax) lines.push(`and ${sessions.length - sessionsMax} more`);
  return `${lines.join('; ')}.`;
}

import { sql } from 'drizzle-orm';
import { oneRow } from './arrays.ts';
import type { Executor } from './connect.ts';

/** Reads the server's version, and its clock as Unix milliseconds; NaN without an answer. */
export async function readServer(db: Executor) {
  const [server] = await db
    .select({
      version: sql<string>`current_setting('server_version')`,
      nowMs: sql<number>`extract(epoch from clock_timestamp())::float8 * 1000`,
    })
    .from(oneRow);
  return server ?? { version: 'unknown', nowMs: Number.NaN };
}

/** Reads a setting of the session; '' without an answer. */
export async function readSetting(
  db: Executor,
  name: 'TimeZone' | 'default_transaction_isolation' | 'search_path',
): Promise<string> {
  const [row] = await db.select({ value: sql<string>`current_setting(${name})` }).from(oneRow);
  return row?.value ?? '';
}

/**
 * Reads whether Postgres accepts no writes, as a standby or because it was set to read only, as
 * managed servers do when their disk is full. A session's own read-only mode does not count.
 */
export async function readsOnly(db: Executor): Promise<boolean> {
  const [row] = await db
    .select({
      only: sql<boolean>`pg_is_in_recovery() or bool_or(setting = 'on' and source <> 'client')`,
    })
    .from(sql`pg_settings`)
    .where(sql`name = 'default_transaction_read_only'`);
  return row?.only ?? false;
}

/** Another session that uses relations of the warehouse in an open transaction. */
type Session = Awaited<ReturnType<typeof sessionsAtWork>>[number];

/** Lists sessions that use relations of the warehouse, the oldest transactions first. */
export async function sessionsAtWork(db: Executor) {
  const relation = sql`n.nspname || '.' || c.relname`;
  return await db
    .select({
      pid: sql<number>`a.pid`,
      login: sql<string>`a.usename`,
      application: sql<string>`coalesce(a.application_name, '')`,
      /** When its transaction began; null if this login may not see that. */
      since: sql<string | null>`a.xact_start`,
      relations: sql<string[]>`array_agg(distinct ${relation} order by ${relation})`,
    })
    .from(sql`pg_locks l`)
    .innerJoin(sql`pg_class c`, sql`c.oid = l.relation`)
    .innerJoin(sql`pg_namespace n`, sql`n.oid = c.relnamespace`)
    .innerJoin(sql`pg_stat_activity a`, sql`a.pid = l.pid`)
    .where(sql`l.granted
      and l.locktype = 'relation'
      and l.pid <> pg_backend_pid()
      and c.relkind in ('r', 'p', 'v')
      and l.database = (select oid from pg_database where datname = current_database())
      and n.nspname in (
        'utility', 'history', 'analytics', 'fields', 'ops', 'metersync', 'metersync_migrations'
      )`)
    .groupBy(sql`a.pid, a.usename, a.application_name, a.xact_start`)
    .orderBy(sql`a.xact_start nulls last, a.pid`);
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

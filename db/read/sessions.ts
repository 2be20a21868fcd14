import { sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';

/** Another session that uses relations of the warehouse in an open transaction. */
export interface Session {
  readonly pid: number;
  readonly login: string;
  readonly application: string;
  /** When its transaction began; null if this login may not see that. */
  readonly since: string | null;
  readonly relations: readonly string[];
}

/** Lists sessions that use relations of the warehouse, the oldest transactions first. */
export async function sessionsAtWork(db: Executor): Promise<Session[]> {
  const { rows } = await db.execute<Session & Record<string, unknown>>(sql`
    with used as (
      select
        l.pid,
        n.nspname || '.' || c.relname as name
      from pg_locks l
        join pg_class c on c.oid = l.relation
        join pg_namespace n on n.oid = c.relnamespace
      where l.granted
        and l.locktype = 'relation'
        and l.pid <> pg_backend_pid()
        and c.relkind in ('r', 'p', 'v')
        and l.database = (select oid from pg_database where datname = current_database())
        and n.nspname in (
          'utility', 'history', 'analytics', 'fields', 'ops', 'metersync', 'metersync_migrations'
        )
    )
    select
      a.pid,
      a.usename as login,
      coalesce(a.application_name, '') as application,
      a.xact_start::text as since,
      array_agg(distinct used.name order by used.name) as relations
    from used
      join pg_stat_activity a on a.pid = used.pid
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

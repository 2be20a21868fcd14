import { sql } from 'drizzle-orm';
import type { Executor, Transaction } from './connect.ts';
import { sqlState } from './failures.ts';

const dependentsExist = '2BP01';

/**
 * Drops a view or a function. What was built on it keeps it, and is returned as Postgres tells it:
 * `view mine depends on view analytics.bills`.
 */
export async function dropUnlessUsed(tx: Transaction, what: string): Promise<string[]> {
  try {
    await tx.transaction((part) => part.execute(sql.raw(`drop ${what}`)));
    return [];
  } catch (error) {
    if (sqlState(error) !== dependentsExist) throw error;
    // Drizzle's error wraps that of Postgres.
    const { detail = '' } = ((error as Error).cause ?? error) as { detail?: string };
    return detail.split('\n');
  }
}

/**
 * Statements that grant again what is granted on a view and on columns of it; none when it isn't
 * there.
 */
export async function grantsOn(db: Executor, view: string): Promise<string[]> {
  const { rows } = await db.execute<{ grant: string }>(sql`
    with granted as (
      select acl.*, null::name as column
      from pg_class c
        cross join lateral aclexplode(c.relacl) acl
      where c.oid = to_regclass(${view})
      union all
      select acl.*, a.attname
      from pg_attribute a
        cross join lateral aclexplode(a.attacl) acl
      where a.attrelid = to_regclass(${view})
        and a.attnum > 0
        and not a.attisdropped
    )
    select
      format(
        'grant %s%s on %s to %s%s',
        g.privilege_type,
        case when g.column is not null then format(' (%I)', g.column) end,
        ${view}::text,
        case g.grantee when 0 then 'public' else g.grantee::regrole::text end,
        case when g.is_grantable then ' with grant option' end
      ) as grant
    from granted g
    where g.grantee <> (select relowner from pg_class where oid = to_regclass(${view}))`);
  return rows.map(({ grant }) => grant);
}

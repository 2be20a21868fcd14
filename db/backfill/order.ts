import { and, gt, isNull, sql } from 'drizzle-orm';
import type { RowOf } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { companies, meters } from '../schema/utility.ts';

/** Lists ids of companies to backfill, in order, after the given one. */
export async function companiesAfter(
  db: Executor,
  after: string | null,
  limit: number,
): Promise<string[]> {
  const next = await db
    .select({ id: companies.id })
    .from(companies)
    .where(and(isNull(companies.deletedAt), after === null ? undefined : gt(companies.id, after)))
    .orderBy(companies.id)
    .limit(limit);
  return next.map(({ id }) => id);
}

/** Lists live meters of a company, in order, after the given one. */
export async function metersAfter(
  db: Executor,
  companyId: string,
  after: string | null,
  limit: number,
): Promise<string[]> {
  const result = await hot(db, 'metersAfter').execute<RowOf<typeof meters.id>>(sql`
    select id
    from (
      -- The company's meters first: ordered with a limit, the planner would scan all meters.
      select ${meters.id}
      from ${meters}
      where ${meters.companyId} = ${companyId}::uuid
        and ${meters.deletedAt} is null
      offset 0
    ) theirs
    where ${after}::text is null
      or id > ${after}
    order by id
    limit ${limit}`);
  return result.rows.map(({ id }) => id);
}

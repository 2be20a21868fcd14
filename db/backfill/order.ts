import { and, eq, gt, isNull, sql } from 'drizzle-orm';
import type { RowOf } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { companies, intervals, meters } from '../schema/utility.ts';

/** Ids of companies to backfill, in order, after the given one. */
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

/** Meters of a company that live, in order, after the given one. */
export async function metersAfter(
  db: Executor,
  companyId: string,
  after: string | null,
  limit: number,
): Promise<string[]> {
  const result = await db.execute<RowOf<typeof meters.id>>(sql`
    select id
    from (
      -- Those of the company first: for a few in order all meters would be gone through.
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

/** Whether any reading of a meter is held. */
export async function hasReadings(db: Executor, meterId: string): Promise<boolean> {
  const held = await db
    .select({ meterId: intervals.meterId })
    .from(intervals)
    .where(eq(intervals.meterId, meterId))
    .limit(1);
  return held.length > 0;
}

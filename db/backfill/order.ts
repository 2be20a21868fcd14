import { and, eq, gt, isNull } from 'drizzle-orm';
import { literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { companies, meters } from '../schema/utility.ts';

/** Lists ids of companies to backfill, in order, after the given company. */
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

/** Lists live meters of a company, in order, after the given meter. */
export async function metersAfter(
  db: Executor,
  companyId: string,
  after: string | null,
  limit: number,
): Promise<string[]> {
  // In one query with an order and a limit, the planner would scan all meters.
  const theirs = db
    .select({ id: meters.id })
    .from(meters)
    .where(and(eq(meters.companyId, companyId), isNull(meters.deletedAt)))
    .offset(literal(0))
    .as('theirs');
  const next = await db
    .select({ id: theirs.id })
    .from(theirs)
    .where(after === null ? undefined : gt(theirs.id, after))
    .orderBy(theirs.id)
    .limit(limit);
  return next.map(({ id }) => id);
}

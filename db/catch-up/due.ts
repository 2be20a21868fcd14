import { and, eq, isNull, sql } from 'drizzle-orm';
import { batches } from '../../contract/limits.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { array, literal, oneRow } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { ownersDue } from '../hot/owners-due.ts';
import { usageData } from '../schema/utility.ts';

/**
 * Returns at most `limit` owners of due records, longest due first, so that retries of one owner do
 * not delay the others; none while the service is parked. `among` restricts the search.
 */
export async function dueOwners(
  db: Executor,
  kind: CatchUpKind,
  limit: number,
  among?: readonly string[],
): Promise<string[]> {
  if (among !== undefined) return (await ownersDue(db, kind, among, limit)).owners;
  const longest = await ownersDue(db, kind, 'longest', limit);
  if (longest.owners.length >= limit || longest.records < batches.dueRecords) return longest.owners;
  // A few owners have many due records: look up each waiting owner once.
  return (await ownersDue(db, kind, 'each', limit)).owners;
}

/** Returns the warehouse's clock, which orders the reads of all workers. */
export async function warehouseNow(db: Executor): Promise<string> {
  const [clock] = await db.select({ now: sql<string>`clock_timestamp()::text` }).from(oneRow);
  return clock?.now ?? '';
}

/** Reads the ids of live usage rows, by the id of their document. */
export async function liveUsage(
  db: Executor,
  documentIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const theirs = db
    .select({ id: usageData.id })
    .from(usageData)
    .where(and(eq(usageData.documentId, sql`asked.id`), isNull(usageData.deletedAt)))
    .offset(literal(0))
    .as('theirs');
  const live = await db
    .select({ id: sql<string>`asked.id`, ids: sql<string[]>`array_agg(${theirs.id}::text)` })
    .from(sql`unnest(${array([...new Set(documentIds)], 'uuid')}) as asked (id)`)
    .crossJoinLateral(theirs)
    .groupBy(sql`asked.id`);
  return new Map(live.map(({ id, ids }) => [id, ids]));
}

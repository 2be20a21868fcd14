import { and, desc, eq, isNotNull, isNull, sql } from 'drizzle-orm';
import { isWhole } from '../backfill/runs.ts';
import type { Executor } from '../connection/connect.ts';
import { runs } from '../schema/metersync.ts';

/** A run; its counts are sums over its parts, and 0 while it runs. */
export type ListedRun = typeof runs.$inferSelect;

/** Lists runs that have not ended, the latest first. */
export async function listRunning(db: Executor): Promise<ListedRun[]> {
  return await db
    .select()
    .from(runs)
    .where(and(isWhole(runs), isNull(runs.finishedAt)))
    .orderBy(desc(runs.startedAt))
    .limit(100);
}

/** Lists runs that ended, the latest first. `before` is the last run of the previous page. */
export async function listEnded(
  db: Executor,
  page: {
    readonly limit: number;
    readonly before?: { readonly finishedAt: string; readonly runId: string } | undefined;
  },
): Promise<ListedRun[]> {
  const { limit, before } = page;
  const earlier =
    before &&
    sql`(${runs.finishedAt}, ${runs.runId}) < (${before.finishedAt}::timestamptz, ${before.runId}::uuid)`;
  return await db
    .select()
    .from(runs)
    .where(and(isWhole(runs), isNotNull(runs.finishedAt), earlier))
    .orderBy(desc(runs.finishedAt), desc(runs.runId))
    .limit(limit);
}

export const readRun = async (db: Executor, runId: string): Promise<ListedRun | undefined> =>
  (
    await db
      .select()
      .from(runs)
      .where(and(eq(runs.runId, runId), isWhole(runs)))
  )[0];

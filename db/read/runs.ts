import { and, desc, eq, isNotNull, isNull, type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { runs } from '../schema/metersync.ts';

/** The last run of a page. */
export interface RunCursor {
  readonly finishedAt: string;
  readonly runId: string;
}

/** Of a run; its counts are sums over its parts, and 0 while it runs. */
const columns = {
  runId: runs.runId,
  kind: runs.kind,
  state: runs.state,
  startedAt: runs.startedAt,
  finishedAt: runs.finishedAt,
  workflowId: runs.workflowId,
  inserted: runs.rowsInserted,
  changed: runs.rowsChanged,
  unchanged: runs.rowsUnchanged,
  tombstoned: runs.rowsTombstoned,
  rejected: runs.rowsRejected,
  /** Values that no column holds. */
  unreadable: runs.valuesUnreadable,
  /** Changes that no event had reported. */
  missed: runs.rowsMissed,
  /** By how much listings moved while they were read. */
  drift: runs.drift,
  requests: runs.requests,
  error: runs.error,
  errorCode: runs.errorCode,
};

/** Whether a row is that of a run, and not of a part. */
export const isRunRow: SQL | undefined = and(isNull(runs.companyId), isNull(runs.resource));

export type ListedRun = Awaited<ReturnType<typeof listRunning>>[number];

/** Lists runs that have not ended, the latest first. */
export async function listRunning(db: Executor) {
  return await db
    .select(columns)
    .from(runs)
    .where(and(isRunRow, isNull(runs.finishedAt)))
    .orderBy(desc(runs.startedAt))
    .limit(100);
}

/** Lists runs that ended, the latest first. */
export async function listEnded(
  db: Executor,
  page: { readonly limit: number; readonly before?: RunCursor | undefined },
): Promise<ListedRun[]> {
  const { limit, before } = page;
  const earlier =
    before === undefined
      ? undefined
      : sql`(${runs.finishedAt}, ${runs.runId}) < (
        ${before.finishedAt}::timestamptz,
        ${before.runId}::uuid
      )`;
  return await db
    .select(columns)
    .from(runs)
    .where(and(isRunRow, isNotNull(runs.finishedAt), earlier))
    .orderBy(desc(runs.finishedAt), desc(runs.runId))
    .limit(limit);
}

export async function readRun(db: Executor, runId: string): Promise<ListedRun | undefined> {
  const [run] = await db
    .select(columns)
    .from(runs)
    .where(and(eq(runs.runId, runId), isRunRow));
  return run;
}

import { count, isNull } from 'drizzle-orm';
import { failureTypes } from '../../contract/failures.ts';
import { eventOutcomes, type Severity } from '../../contract/names.ts';
import type { KindOfRuns, WarehouseHealth } from '../../health/measured.ts';
import type { Database, Executor, Transaction } from '../connection/connect.ts';
import { countUnreadable } from '../records/unreadable-values.ts';
import { recordResources, resources, tableName } from '../resources.ts';
import { journal } from '../schema/metersync.ts';
import { intervals } from '../schema/utility.ts';
import { aboutCount, allCounted, mostCounted } from './bounds.ts';
import { measure, withinTime } from './health.ts';

/** The output of `metersync status`. Ages are seconds. */
export type WarehouseStatus = Awaited<ReturnType<typeof statusOf>>;

/** Work that waits until an operator acts. */
export type ParkedStatus = WarehouseStatus['parked'][number];

/** Reads the status with every count exact: the cost grows with the tables. */
export const readStatus = async (db: Database): Promise<WarehouseStatus> =>
  await withoutTimeout(
    db,
    async (tx) => await statusOf(tx, await measure(tx, 0, allCounted), allCounted),
  );

/**
 * Adds to a health what else `metersync status` shows. Events are counted exactly, 10 million in two
 * seconds; other numbers above 10,000 are approximate.
 */
export const readStatusAbout = async (
  db: Database,
  health: WarehouseHealth,
): Promise<WarehouseStatus> =>
  await withoutTimeout(db, async (tx) => await statusOf(tx, health, mostCounted));

const withoutTimeout = async <T>(db: Database, read: (tx: Transaction) => Promise<T>): Promise<T> =>
  await withinTime(db, read, 0);

async function statusOf(db: Executor, health: WarehouseHealth, most: number) {
  const events = await countOutcomes(db);
  const pending = events.pending === 0 ? [] : Object.values(health.pending);
  const { lastEventAt, quietSeconds } = health.silence;
  return {
    events,
    oldestPendingSeconds: Math.max(0, ...pending.map(({ oldestSeconds }) => oldestSeconds ?? 0)),
    lastEventSecondsAgo: lastEventAt === null ? null : quietSeconds,
    /** Signs that the service's events may not arrive. */
    silence: health.silence,
    backfills: statusOfRuns(health.runs.full),
    reconciles: statusOfRuns(health.runs.reconcile),
    /** Why events wait for their next attempt, by failure, most events first. */
    waiting: health.waiting.map(({ since: _, ...row }) => row),
    /** Parked work by failure, with what to do, and parts of backfills not read since. */
    parked: health.parked.map(({ parts, ...row }) => ({
      ...row,
      operator: failureTypes[row.code].operator,
      backfillParts: parts,
    })),
    /** Interval events with fewer readings than they reported, and how many are lacking. */
    intervalShortfall: health.intervalShortfall,
    rejectedRecords: health.rejectedRecords,
    /** Values of live records that no column holds. */
    unreadableValues: await countUnreadable(db, most),
    /** Quarantined rows and readings that wait for a decision through `metersync deletes`. */
    quarantinedDeletes: health.undecidedDeletes,
    /** Rows that somebody decided to keep and that the service no longer has. */
    keptDeletes: health.keptDeletes,
    issues: issuesOf(health),
    rows: await countRows(db, most),
  };
}

/** Describes runs of a kind. `error` says why the last run is incomplete, or what it left out. */
function statusOfRuns({ running, last }: KindOfRuns) {
  if (last === null) return { running, last };
  const { runId, state, finishedAt, error } = last;
  return { running, last: { runId, state, finishedAt, error } };
}

/** Adds up a health's counts of open issues. */
function issuesOf({ issues, acknowledgedIssues }: WarehouseHealth) {
  const of = (severity: Severity): number =>
    issues.filter((issue) => issue.severity === severity).reduce((sum, { open }) => sum + open, 0);
  return {
    error: of('error'),
    warning: of('warning'),
    info: of('info'),
    acknowledged: acknowledgedIssues,
  };
}

/** Counts events by outcome. */
export async function countOutcomes(db: Executor) {
  const rows = await db
    .select({ outcome: journal.outcome, events: count() })
    .from(journal)
    .groupBy(journal.outcome);
  const of = Object.fromEntries(rows.map(({ outcome, events }) => [outcome, events]));
  const [pending = 0, applied = 0, superseded = 0, ignored = 0, dead = 0, missing = 0] =
    eventOutcomes.map((outcome) => of[outcome]);
  return { pending, applied, superseded, ignored, dead, missing };
}

/** Counts the live rows of every resource. Counts of `most` and more are estimates. */
async function countRows(db: Executor, most: number) {
  const counts: Record<string, number> = {};
  for (const resource of recordResources) {
    const { table } = resources[resource];
    counts[tableName(resource)] = await aboutCount(db, table, most, isNull(table.deletedAt));
  }
  return { ...counts, intervals: await aboutCount(db, intervals, most) };
}

import { count, type SQL, sql } from 'drizzle-orm';
import { failureTypes } from '../../contract/failures.ts';
import { type EventOutcome, eventOutcomes, type Severity } from '../../contract/names.ts';
import type {
  KindOfRuns,
  LastRun,
  ParkedWork,
  Silence,
  WarehouseHealth,
} from '../../health/measured.ts';
import type { Database, Executor } from '../connection/connect.ts';
import { type FieldName, fieldsWithoutColumn } from '../fields/typed-views.ts';
import { recordResources, resources, tableName, tableOf } from '../resources.ts';
import { journal } from '../schema/metersync.ts';
import { intervals } from '../schema/utility.ts';
import { aboutCount, allCounted, countOf, mostCounted } from './counted.ts';
import { measure, withinTime } from './health.ts';
import { countUnreadable } from './unreadable-values.ts';
import { readWaiting, type WaitingEvents } from './waiting.ts';

/** Runs of a kind; `error` is why the last one is not complete, or what it left out. */
export interface RunsStatus {
  readonly running: number;
  readonly last: Pick<LastRun, 'runId' | 'state' | 'finishedAt' | 'error'> | null;
}

/** The output of `metersync status`. Ages are seconds. */
export interface WarehouseStatus {
  readonly events: Readonly<
    Record<'pending' | 'applied' | 'superseded' | 'ignored' | 'dead' | 'missing', number>
  >;
  readonly oldestPendingSeconds: number;
  readonly lastEventSecondsAgo: number | null;
  /** Signs that the service's events may not arrive. */
  readonly silence: Silence;
  readonly backfills: RunsStatus;
  readonly reconciles: RunsStatus;
  /** Why events wait for their next attempt, by failure, most events first. */
  readonly waiting: readonly WaitingEvents[];
  /** Work that the service refused, by failure. */
  readonly parked: readonly ParkedStatus[];
  /**
   * Interval events whose ranges have fewer readings than they reported, and how many readings are
   * lacking.
   */
  readonly intervalShortfall: { readonly events: number; readonly readings: number };
  readonly rejectedRecords: number;
  /** Values of live records that no column holds. */
  readonly unreadableValues: number;
  /** Quarantined rows, and readings of ranges, that wait for `metersync deletes`. */
  readonly quarantinedDeletes: number;
  /** Rows that somebody decided to keep, and that the service has no more. */
  readonly keptDeletes: number;
  /** Fields that no typed view shows with all of their values yet. */
  readonly fieldsWithoutColumn: readonly FieldName[];
  /** Open issues of the data: by severity, and acknowledged ones. */
  readonly issues: Readonly<Record<Severity | 'acknowledged', number>>;
  readonly rows: Readonly<Record<string, number>>;
}

/** Work that waits until an operator acts. */
export interface ParkedStatus extends Omit<ParkedWork, 'parts'> {
  /** What the operator does. */
  readonly operator: string;
  /** Parts of backfills that failed for it and that no later run read. */
  readonly backfillParts: number;
}

/** Reads the status with every count exact: the cost grows with the tables. */
export async function readStatus(db: Database): Promise<WarehouseStatus> {
  const noTimeout = 0;
  return await withinTime(
    db,
    async (tx) => await statusOf(tx, await measure(tx, 0, allCounted), allCounted),
    noTimeout,
  );
}

/** Adds to the health of a warehouse what `metersync status` shows besides: numbers above 10,000 are about. */
export async function readStatusAbout(
  db: Database,
  health: WarehouseHealth,
): Promise<WarehouseStatus> {
  return await withinTime(db, async (tx) => await statusOf(tx, health, mostCounted));
}

async function statusOf(
  db: Executor,
  health: WarehouseHealth,
  most: number,
): Promise<WarehouseStatus> {
  const events = await aboutOutcomes(db, health.pending, most);
  const pending = events.pending === 0 ? [] : Object.values(health.pending);
  const { lastEventAt, quietSeconds } = health.silence;
  return {
    events,
    oldestPendingSeconds: Math.max(0, ...pending.map(({ oldestSeconds }) => oldestSeconds ?? 0)),
    lastEventSecondsAgo: lastEventAt === null ? null : quietSeconds,
    silence: health.silence,
    backfills: statusOfRuns(health.runs.full),
    reconciles: statusOfRuns(health.runs.reconcile),
    waiting: await readWaiting(db, most),
    parked: statusOfParked(health.parked),
    intervalShortfall: health.intervalShortfall,
    rejectedRecords: health.rejectedRecords,
    unreadableValues: await countUnreadable(db, most),
    quarantinedDeletes: health.undecidedDeletes,
    keptDeletes: health.keptDeletes,
    fieldsWithoutColumn: await fieldsWithoutColumn(db),
    issues: issuesOf(health),
    rows: await countRows(db, most),
  };
}

const statusOfRuns = ({ running, last }: KindOfRuns): RunsStatus => {
  if (last === null) return { running, last };
  const { runId, state, finishedAt, error } = last;
  return { running, last: { runId, state, finishedAt, error } };
};

const statusOfParked = (work: readonly ParkedWork[]): ParkedStatus[] =>
  work.map(({ parts, ...row }) => ({
    ...row,
    operator: failureTypes[row.code].operator,
    backfillParts: parts,
  }));

/** Adds up a health's counts of open issues. */
function issuesOf({ issues, acknowledgedIssues }: WarehouseHealth): WarehouseStatus['issues'] {
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
export async function countOutcomes(db: Executor): Promise<WarehouseStatus['events']> {
  const rows = await db
    .select({ outcome: journal.outcome, events: count() })
    .from(journal)
    .groupBy(journal.outcome);
  const of = Object.fromEntries(rows.map(({ outcome, events }) => [outcome, events]));
  const [pending = 0, applied = 0, superseded = 0, ignored = 0, dead = 0, missing = 0] =
    eventOutcomes.map((outcome) => of[outcome]);
  return { pending, applied, superseded, ignored, dead, missing };
}

/**
 * Counts events by outcome, exactly while the journal is shorter than `most`. Else the applied ones
 * are an estimate: what the others leave of the journal.
 */
async function aboutOutcomes(
  db: Executor,
  pending: WarehouseHealth['pending'],
  most: number,
): Promise<WarehouseStatus['events']> {
  const all = await aboutCount(db, sql`from ${journal}`, most);
  if (all < most) return await countOutcomes(db);
  // No parameter, so that a partial index serves it.
  const aside = (outcome: EventOutcome): SQL =>
    countOf(
      sql`from ${journal}
          where ${journal.aside} = ${sql.raw(`'${outcome}'`)}`,
      most,
    );
  const { rows } = await db.execute<
    Record<'superseded' | 'ignored' | 'dead' | 'missing', number>
  >(sql`
    select
      ${aside('superseded')} as superseded,
      ${aside('ignored')} as ignored,
      ${aside('dead')} as dead,
      ${aside('missing')} as missing`);
  const { superseded = 0, ignored = 0, dead = 0, missing = 0 } = rows[0] ?? {};
  const waits = Object.values(pending).reduce(
    (sum, { due, waiting, parked }) => sum + due + waiting + parked,
    0,
  );
  const applied = Math.max(0, all - superseded - ignored - dead - missing - waits);
  return { pending: waits, applied, superseded, ignored, dead, missing };
}

/** The resources whose rows are counted, by the name of their table. */
const counted = [
  ...recordResources.map((resource) => ({
    name: tableName(resource),
    rows: sql`${tableOf(resource)}
    where ${resources[resource].table.deletedAt} is null`,
  })),
  { name: 'intervals', rows: sql`${intervals}` },
];

/** Counts live rows of every resource; of those with `most` and more about. */
async function countRows(db: Executor, most: number): Promise<Record<string, number>> {
  const counts: [string, number][] = [];
  for (const { name, rows } of counted)
    counts.push([name, await aboutCount(db, sql`from ${rows}`, most)]);
  return Object.fromEntries(counts);
}

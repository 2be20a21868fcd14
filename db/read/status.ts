import { count, type SQL, sql } from 'drizzle-orm';
import { failureTypes } from '../../contract/failures.ts';
import { limits } from '../../contract/limits.ts';
import { type EventOutcome, eventOutcomes, type Severity } from '../../contract/names.ts';
import type {
  KindOfRuns,
  LastRun,
  ParkedWork,
  Silence,
  WarehouseHealth,
} from '../../health/measured.ts';
import type { Database, Executor } from '../connection/connect.ts';
import { waits } from '../deletes/explained.ts';
import { note, rowsOfNote } from '../deletes/tombstone.ts';
import { type FieldName, fieldsWithoutColumn } from '../fields/typed-views.ts';
import { recordResources, resources, tableName, tableOf } from '../resources.ts';
import { deletes, journal, rejectedRecords, staleRecords } from '../schema/metersync.ts';
import { intervals } from '../schema/utility.ts';
import { aboutCount, countOf, mostCounted } from './counted.ts';
import { withinTime } from './health.ts';
import { countIssues, type IssueCounts } from './issues.ts';
import { readKindOfRuns } from './kinds-of-runs.ts';
import { readParked } from './parked.ts';
import { readShortfall } from './shortfall.ts';
import { readSilence } from './silence.ts';
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
  /** Fields that no typed view shows with all of their values yet. */
  readonly fieldsWithoutColumn: readonly FieldName[];
  /** Open issues of the data; unacknowledged ones by severity. */
  readonly issues: IssueCounts;
  readonly rows: Readonly<Record<string, number>>;
}

/** Work that waits until an operator acts. */
export interface ParkedStatus extends Omit<ParkedWork, 'parts'> {
  /** What the operator does. */
  readonly operator: string;
  /** Parts of backfills that failed for it and that no later run read. */
  readonly backfillParts: number;
}

/** Counts the state of the pipeline from its own tables: the cost grows with them. */
export async function readStatus(db: Executor): Promise<WarehouseStatus> {
  const aside = await countSetAside(db);
  return {
    events: await countOutcomes(db),
    oldestPendingSeconds: Math.max(0, aside.oldest ?? 0),
    lastEventSecondsAgo: await lastEventAge(db),
    silence: await readSilence(db, null),
    backfills: statusOfRuns(await readKindOfRuns(db, 'full', aside.quarantined)),
    reconciles: statusOfRuns(await readKindOfRuns(db, 'reconcile', aside.quarantined)),
    waiting: await readWaiting(db, null),
    parked: statusOfParked(await readParked(db, null)),
    intervalShortfall: await readShortfall(db, null),
    rejectedRecords: aside.rejected,
    unreadableValues: await countUnreadable(db, null),
    quarantinedDeletes: aside.quarantined,
    fieldsWithoutColumn: await fieldsWithoutColumn(db),
    issues: await countIssues(db),
    rows: await countRows(db),
  };
}

/** Adds to the health of a warehouse what `metersync status` shows besides: numbers above 10,000 are about. */
export async function readStatusAbout(
  db: Database,
  health: WarehouseHealth,
): Promise<WarehouseStatus> {
  return await withinTime(db, async (tx) => {
    const counts = await aboutOutcomes(tx, health.pending);
    const pending = counts.pending === 0 ? [] : Object.values(health.pending);
    return {
      events: counts,
      oldestPendingSeconds: Math.max(0, ...pending.map(({ oldestSeconds }) => oldestSeconds ?? 0)),
      lastEventSecondsAgo: await lastEventAge(tx),
      silence: health.silence,
      backfills: statusOfRuns(health.runs.full),
      reconciles: statusOfRuns(health.runs.reconcile),
      waiting: await readWaiting(tx, mostCounted),
      parked: statusOfParked(health.parked),
      intervalShortfall: health.intervalShortfall,
      rejectedRecords: health.rejectedRecords,
      unreadableValues: await countUnreadable(tx, mostCounted),
      quarantinedDeletes: health.undecidedDeletes,
      fieldsWithoutColumn: await fieldsWithoutColumn(tx),
      issues: issuesOf(health),
      rows: await aboutRows(tx),
    };
  });
}

interface SetAside extends Record<string, unknown> {
  readonly oldest: number | null;
  readonly rejected: number;
  readonly quarantined: number;
}

/** Reads how long the oldest event waits, and how many rows are set aside. */
async function countSetAside(db: Executor): Promise<SetAside> {
  const result = await db.execute<SetAside>(sql`
    select
      (
        select extract(epoch from clock_timestamp() - min(${staleRecords.since}))::float8
        from ${staleRecords}
      ) as oldest,
      (
        select count(*)::int
        from ${rejectedRecords}
      ) as rejected,
      (
        select coalesce(sum(${rowsOfNote}), 0)::int
        from ${deletes} ${note}
        where ${waits}
      ) as quarantined`);
  return result.rows[0] ?? { oldest: null, rejected: 0, quarantined: 0 };
}

/** Reads how long ago the last event was received; null before the first. */
async function lastEventAge(db: Executor): Promise<number | null> {
  const { rows } = await db.execute<{ seconds: number | null }>(sql`
    select extract(epoch from clock_timestamp() - max(${journal.receivedAt}))::float8 as seconds
    from ${journal}`);
  return rows[0]?.seconds ?? null;
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
function issuesOf({
  issues,
  acknowledgedIssues,
}: Pick<WarehouseHealth, 'issues' | 'acknowledgedIssues'>): IssueCounts {
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
async function countOutcomes(db: Executor): Promise<WarehouseStatus['events']> {
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
 * Counts events by outcome, exactly while the journal is short. Else the applied ones are an
 * estimate: what the others leave of the journal.
 */
async function aboutOutcomes(
  db: Executor,
  pending: WarehouseHealth['pending'],
): Promise<WarehouseStatus['events']> {
  const all = await aboutCount(db, sql`from ${journal}`);
  if (all <= limits.countMax) return await countOutcomes(db);
  // No parameter, so that a partial index serves it.
  const aside = (outcome: EventOutcome): SQL =>
    countOf(
      sql`from ${journal}
          where ${journal.aside} = ${sql.raw(`'${outcome}'`)}`,
      mostCounted,
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

/** Counts live rows of every resource. */
async function countRows(db: Executor): Promise<Record<string, number>> {
  const counts = counted.map(
    ({ name, rows }) => sql`
    select
      ${name} as name,
      count(*)::int as count
    from ${rows}`,
  );
  const result = await db.execute<{ name: string; count: number }>(
    sql.join(
      counts,
      sql`
    union all`,
    ),
  );
  return Object.fromEntries(result.rows.map((row) => [row.name, row.count]));
}

/** Counts live rows of every resource; of those with more than 10,000 about. */
async function aboutRows(db: Executor): Promise<Record<string, number>> {
  const counts: [string, number][] = [];
  for (const { name, rows } of counted)
    counts.push([name, await aboutCount(db, sql`from ${rows}`)]);
  return Object.fromEntries(counts);
}

export interface Latency {
  readonly events: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

/**
 * Measures latencies of events received since `since` (ISO time), in milliseconds from receipt.
 * `row` ends when the event is in its row, `record` when its record was read again.
 */
export async function eventLatency(
  db: Executor,
  since: string,
): Promise<{ row: Latency; record: Latency }> {
  const result = await db.execute<{
    step: 'row' | 'record';
    events: number;
    p50: number | null;
    p99: number | null;
  }>(sql`
    with steps as (
      select
        step,
        extract(epoch from at - ${journal.receivedAt})::float8 * 1000 as ms
      from ${journal}
        cross join lateral (
          values
            ('row', ${journal.recordedAt}),
            (
              'record',
              case when ${journal.outcome} = 'applied' then coalesce(${journal.settledAt}, ${journal.recordedAt}) end
            )
        ) as t (step, at)
      where ${journal.receivedAt} >= ${since}::timestamptz
        and at is not null
    )
    select
      step,
      count(*)::int as events,
      percentile_cont(0.5) within group (order by ms) as p50,
      percentile_cont(0.99) within group (order by ms) as p99
    from steps
    group by step`);
  const of = (step: 'row' | 'record'): Latency => {
    const row = result.rows.find((found) => found.step === step);
    return { events: row?.events ?? 0, p50Ms: row?.p50 ?? null, p99Ms: row?.p99 ?? null };
  };
  return { row: of('row'), record: of('record') };
}

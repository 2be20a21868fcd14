import { type SQL, sql } from 'drizzle-orm';
import { type FailureCode, failureTypes, parkingCodes } from '../../contract/failures.ts';
import type { EventOutcome, RunKind, RunState } from '../../contract/names.ts';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import type { BlockedView } from '../fields/refresh-views.ts';
import { livesCompany } from '../parking.ts';
import { recordResources, tableName, tableOf } from '../resources.ts';
import { intervals } from '../schema/utility.ts';
import { eventsOf } from './events.ts';
import { countIssues, type IssueCounts } from './issues.ts';
import { readNarrowViews } from './narrow-views.ts';
import { readSilence, type Silence } from './silence.ts';

/** Runs of a kind; `error` is why the last one is not complete, or what it left out. */
export interface RunsStatus {
  readonly running: number;
  readonly last: {
    readonly runId: string;
    readonly state: RunState;
    readonly finishedAt: string;
    readonly error: string | null;
  } | null;
}

/** What `metersync status` shows. Ages are seconds. */
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
  /** Why events wait to be tried again, by failure, most events first. */
  readonly waiting: readonly WaitingEvents[];
  /** Work that the service refused, by failure. */
  readonly parked: readonly ParkedWork[];
  /**
   * Interval events whose ranges show fewer readings than they told of, and how many readings that
   * is.
   */
  readonly intervalShortfall: { readonly events: number; readonly readings: number };
  readonly rejectedRecords: number;
  /** Rows that a run found gone and that wait for `metersync deletes`. */
  readonly quarantinedDeletes: number;
  /** Typed views that cannot show all values, as something was built on them. */
  readonly blockedViews: readonly BlockedView[];
  /** Open issues of the data, those that were not acknowledged by severity. */
  readonly issues: IssueCounts;
  readonly rows: Readonly<Record<string, number>>;
}

/** Events that were postponed for the same failure. */
export interface WaitingEvents {
  readonly code: FailureCode;
  /** One of its reasons, in words. */
  readonly reason: string;
  readonly events: number;
  /** Companies, and meters of intervals, that they are about. */
  readonly owners: number;
  /** When the first of them are tried again. */
  readonly nextAttemptAt: string | null;
}

/** What waits because somebody has to act. */
export interface ParkedWork {
  readonly code: FailureCode;
  /** The first of its reasons, in words. */
  readonly reason: string;
  /** What the operator does. */
  readonly operator: string;
  readonly events: number;
  /** Companies, and meters of intervals, whose events wait. */
  readonly owners: number;
  /** Parts of backfills that failed for it, where no later run read them. */
  readonly backfillParts: number;
  readonly since: string;
  /**
   * When the events are tried again by themselves; null when only a backfill or a resume tries
   * again.
   */
  readonly nextAttemptAt: string | null;
}

/** Work that the service refused, by failure, longest parked first. */
export async function readParked(db: Executor): Promise<ParkedWork[]> {
  const codes = array(parkingCodes, 'text');
  const result = await db.execute<Omit<ParkedWork, 'operator'> & Record<string, unknown>>(sql`
    with told as (
      select error_code as code, min(error) as reason, sum(events)::int as events,
        count(distinct owner)::int as owners, 0 as parts, min(since) as since, min(due_at) as next_attempt_at
      from metersync.stale_records
      where error_code = any(${codes})
      group by error_code
      union all
      select code, message, 0, 0, 0, since, next_attempt_at from metersync.parked
      union all
      select error_code, min(error), 0, 0, count(*)::int, min(started_at), null from (
        select distinct on (company_id, resource) company_id, state, error, error_code, started_at
        from metersync.runs
        where resource is not null order by company_id, resource, started_at desc
      ) last
      where state in ('failed', 'partial') and error_code = any(${codes})
        and (company_id is null or ${livesCompany(sql`company_id`)})
      group by error_code
    )
    select code, min(reason) as reason, sum(events)::int as events, sum(owners)::int as owners,
      sum(parts)::int as "backfillParts", min(since)::text as since, max(next_attempt_at)::text as "nextAttemptAt"
    from told group by code order by min(since)`);
  return result.rows.map((row) => ({ ...row, operator: failureTypes[row.code].operator }));
}

/**
 * Reads the state of the pipeline from its own tables. So many hours without any event are a sign
 * of silence.
 */
export async function readStatus(
  db: Executor,
  { silenceHours = 0 } = {},
): Promise<WarehouseStatus> {
  const events = await countOutcomes(db);
  const ages = await db.execute<{
    pending: number | null;
    last: number | null;
    rejected: number;
    quarantined: number;
  }>(sql`
    select
      (select extract(epoch from clock_timestamp() - min(since))::float8 from metersync.stale_records) as pending,
      (select extract(epoch from clock_timestamp() - max(received_at))::float8 from metersync.journal) as last,
      (select count(*)::int from metersync.rejected_records) as rejected,
      (select count(*)::int from metersync.deletes where state = 'quarantined') as quarantined`);
  const waiting = await db.execute<WaitingEvents & Record<string, unknown>>(sql`
    select error_code as code, min(error) as reason, sum(events)::int as events,
      count(distinct owner)::int as owners, min(due_at)::text as "nextAttemptAt"
    from metersync.stale_records
    where error_code is not null
    group by 1
    order by 3 desc, 1`);
  return {
    events,
    oldestPendingSeconds: Math.max(0, ages.rows[0]?.pending ?? 0),
    lastEventSecondsAgo: ages.rows[0]?.last ?? null,
    silence: await readSilence(db, silenceHours),
    backfills: await readRuns(db, 'full'),
    reconciles: await readRuns(db, 'reconcile'),
    waiting: waiting.rows,
    parked: await readParked(db),
    intervalShortfall: await readShortfall(db),
    rejectedRecords: ages.rows[0]?.rejected ?? 0,
    quarantinedDeletes: ages.rows[0]?.quarantined ?? 0,
    blockedViews: await readNarrowViews(db),
    issues: await countIssues(db),
    rows: await countRows(db),
  };
}

/**
 * How many events have which outcome: those that were not simply applied are counted, the rest is
 * what is left.
 */
async function countOutcomes(db: Executor): Promise<WarehouseStatus['events']> {
  const result = await db.execute<WarehouseStatus['events'] & Record<string, unknown>>(sql`
    with came as materialized (
      select arrived_as, count(*)::int as events from metersync.journal group by arrived_as
    ), unhappy as materialized (
      select distinct kind, record_id from metersync.settlements where outcome <> 'applied'
    ), of_unhappy as (${eventsOf(sql`unhappy`)}
    ), settled as materialized (
      select e.outcome, count(*)::int as events
      from of_unhappy o cross join lateral (
        select outcome from metersync.events where id = o.id offset 0
      ) e
      group by e.outcome
    ), counted as (
      select ${of('came', 'pending')} as waited, ${of('came', 'applied')} as applied, ${of('came', 'ignored')} as ignored,
        ${of('came', 'superseded')} + ${of('settled', 'superseded')} as superseded,
        ${of('came', 'dead')} + ${of('settled', 'dead')} as dead,
        ${of('settled', 'missing')} as missing,
        ${of('settled', 'superseded')} + ${of('settled', 'dead')} + ${of('settled', 'missing')} as not_applied,
        (select coalesce(sum(events), 0)::int from metersync.stale_records) as pending
    )
    select pending, applied + greatest(0, waited - not_applied - pending) as applied, superseded, ignored, dead, missing
    from counted`);
  const [counts] = result.rows;
  if (counts === undefined) throw new Error('a count without a row');
  return counts;
}

/** How many events of a step of the statement above have an outcome. */
const of = (step: 'came' | 'settled', outcome: EventOutcome): SQL =>
  sql.raw(
    `coalesce((select events from ${step} where ${step === 'came' ? 'arrived_as' : 'outcome'} = '${outcome}'), 0)`,
  );

/** Whole runs of a kind: how many are running, and the last that ended. */
export async function readRuns(db: Executor, kind: RunKind): Promise<RunsStatus> {
  const whole = sql`from metersync.runs where resource is null and company_id is null and kind = ${kind}`;
  const running = await db.execute<{ count: number }>(
    sql`select count(*)::int as count ${whole} and state = 'running'`,
  );
  const last = await db.execute<NonNullable<RunsStatus['last']> & Record<string, unknown>>(sql`
    select run_id as "runId", state, finished_at::text as "finishedAt", error ${whole}
      and finished_at is not null order by finished_at desc limit 1`);
  return { running: running.rows[0]?.count ?? 0, last: last.rows[0] ?? null };
}

async function readShortfall(db: Executor): Promise<WarehouseStatus['intervalShortfall']> {
  const result = await db.execute<{ events: number; readings: number }>(sql`
    select count(*)::int as events, coalesce(sum(intervals_told - intervals_found), 0)::float8 as readings
    from metersync.settlements
    where intervals_found < intervals_told`);
  return result.rows[0] ?? { events: 0, readings: 0 };
}

/** Every resource as its rows are counted: by the name of its table. */
const counted = [
  ...recordResources.map((resource) => ({
    name: tableName(resource),
    rows: sql`${tableOf(resource)} where deleted_at is null`,
  })),
  { name: 'intervals', rows: sql`${intervals}` },
];

/** Live rows of every resource, counted. */
export async function countRows(db: Executor): Promise<Record<string, number>> {
  const counts = counted.map(
    ({ name, rows }) => sql`select ${name} as name, count(*)::int as count from ${rows}`,
  );
  const result = await db.execute<{ name: string; count: number }>(
    sql.join(counts, sql` union all `),
  );
  return Object.fromEntries(result.rows.map((row) => [row.name, row.count]));
}

export interface Latency {
  readonly events: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

/**
 * Milliseconds from the receiver having an event to what it carries being in its row (`row`), and
 * to its record having been read again (`record`), over events received since `since` (ISO time).
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
    select step, count(*)::int as events,
      percentile_cont(0.5) within group (order by ms) as p50, percentile_cont(0.99) within group (order by ms) as p99
    from (
      select step, extract(epoch from at - received_at)::float8 * 1000 as ms
      from metersync.events,
        lateral (values ('row', recorded_at), ('record', case when outcome = 'applied' then applied_at end)) as t (step, at)
      where received_at >= ${since}::timestamptz and at is not null
    ) steps group by step`);
  const of = (step: 'row' | 'record'): Latency => {
    const row = result.rows.find((one) => one.step === step);
    return { events: row?.events ?? 0, p50Ms: row?.p50 ?? null, p99Ms: row?.p99 ?? null };
  };
  return { row: of('row'), record: of('record') };
}

import { and, desc, eq, isNotNull, isNull, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { type FailureCode, failureTypes, parkingCodes } from '../../contract/failures.ts';
import type { EventOutcome, RunKind, RunState } from '../../contract/names.ts';
import { array } from '../arrays.ts';
import { livesCompany, stillParked } from '../catch-up/parking.ts';
import type { Executor } from '../connect.ts';
import type { BlockedView } from '../fields/refresh-views.ts';
import { recordResources, resources, tableName, tableOf } from '../resources.ts';
import {
  deletes,
  events,
  journal,
  parked,
  rejectedRecords,
  runs,
  settlements,
  staleRecords,
} from '../schema/metersync.ts';
import { intervals } from '../schema/utility.ts';
import { eventsOf } from './event-filter.ts';
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
  readonly parked: readonly ParkedWork[];
  /**
   * Interval events whose ranges have fewer readings than they reported, and how many readings are
   * lacking.
   */
  readonly intervalShortfall: { readonly events: number; readonly readings: number };
  readonly rejectedRecords: number;
  /** Quarantined rows that wait for `metersync deletes`. */
  readonly quarantinedDeletes: number;
  /** Typed views that cannot hold all values, because something was built on them. */
  readonly blockedViews: readonly BlockedView[];
  /** Open issues of the data; unacknowledged ones by severity. */
  readonly issues: IssueCounts;
  readonly rows: Readonly<Record<string, number>>;
}

/** Events that were postponed for the same failure. */
export interface WaitingEvents {
  readonly code: FailureCode;
  /** One of its error messages. */
  readonly reason: string;
  readonly events: number;
  /** Companies, and for intervals meters, of the events. */
  readonly owners: number;
  /** When the first of them are tried again. */
  readonly nextAttemptAt: string | null;
}

/** Work that waits until an operator acts. */
export interface ParkedWork {
  readonly code: FailureCode;
  /** The first of its error messages. */
  readonly reason: string;
  /** What the operator does. */
  readonly operator: string;
  readonly events: number;
  /** Companies, and for intervals meters, whose events wait. */
  readonly owners: number;
  /** Parts of backfills that failed for it and that no later run read. */
  readonly backfillParts: number;
  readonly since: string;
  /**
   * When the events are tried again automatically; null if only a backfill or a resume tries again.
   */
  readonly nextAttemptAt: string | null;
}

const stale = alias(staleRecords, 'stale');
const part = alias(runs, 'part');

/** Reads work that the service refused, by failure, longest parked first. */
export async function readParked(db: Executor): Promise<ParkedWork[]> {
  const result = await db.execute<Omit<ParkedWork, 'operator'> & Record<string, unknown>>(sql`
    with refused as (${parkedEvents}
      union all
      select
        ${parked.code},
        ${parked.message},
        0,
        0,
        0,
        ${parked.since},
        ${parked.nextAttemptAt}
      from ${parked}
      where ${stillParked}
      union all${parkedParts}
    )
    select
      code,
      min(reason) as reason,
      sum(events)::int as events,
      sum(owners)::int as owners,
      sum(parts)::int as "backfillParts",
      min(since)::text as since,
      max(next_attempt_at)::text as "nextAttemptAt"
    from refused
    group by code
    order by min(since)`);
  return result.rows.map((row) => ({ ...row, operator: failureTypes[row.code].operator }));
}

const codes = array(parkingCodes, 'text');

/** Events that wait for a parking failure. */
const parkedEvents = sql`
      select
        ${stale.errorCode} as code,
        min(${stale.error}) as reason,
        sum(${stale.events})::int as events,
        count(distinct ${stale.owner})::int as owners,
        0 as parts,
        min(${stale.since}) as since,
        min(${stale.dueAt}) as next_attempt_at
      from ${staleRecords} ${stale}
      where ${stale.errorCode} = any(${codes})
      group by ${stale.errorCode}`;

/**
 * Parts of backfills that failed for a parking failure and that no later run read. A tombstoned
 * company's failures need no retry.
 */
const parkedParts = sql`
      select
        error_code,
        min(error),
        0,
        0,
        count(*)::int,
        min(started_at),
        null
      from (
        select distinct on (${part.companyId}, ${part.resource})
          ${part.companyId},
          ${part.state},
          ${part.error},
          ${part.errorCode},
          ${part.startedAt}
        from ${runs} ${part}
        where ${part.resource} is not null
        order by ${part.companyId}, ${part.resource}, ${part.startedAt} desc
      ) last
      where state in ('failed', 'partial')
        and error_code = any(${codes})
        and (company_id is null or ${livesCompany(sql`company_id`)})
      group by error_code`;

/**
 * Reads the state of the pipeline from its own tables. `silenceHours` without any event are a sign
 * of silence.
 */
export async function readStatus(
  db: Executor,
  { silenceHours = 0 } = {},
): Promise<WarehouseStatus> {
  const ages = await readAges(db);
  return {
    events: await countOutcomes(db),
    oldestPendingSeconds: Math.max(0, ages.pending ?? 0),
    lastEventSecondsAgo: ages.last,
    silence: await readSilence(db, silenceHours),
    backfills: await readRuns(db, 'full'),
    reconciles: await readRuns(db, 'reconcile'),
    waiting: await readWaiting(db),
    parked: await readParked(db),
    intervalShortfall: await readShortfall(db),
    rejectedRecords: ages.rejected,
    quarantinedDeletes: ages.quarantined,
    blockedViews: await readNarrowViews(db),
    issues: await countIssues(db),
    rows: await countRows(db),
  };
}

interface Ages extends Record<string, unknown> {
  readonly pending: number | null;
  readonly last: number | null;
  readonly rejected: number;
  readonly quarantined: number;
}

/** Reads how long events wait, when the last came, and how many rows are set aside. */
async function readAges(db: Executor): Promise<Ages> {
  const result = await db.execute<Ages>(sql`
    select
      (
        select extract(epoch from clock_timestamp() - min(${staleRecords.since}))::float8
        from ${staleRecords}
      ) as pending,
      (
        select extract(epoch from clock_timestamp() - max(${journal.receivedAt}))::float8
        from ${journal}
      ) as last,
      (
        select count(*)::int
        from ${rejectedRecords}
      ) as rejected,
      (
        select count(*)::int
        from ${deletes}
        where ${deletes.state} = 'quarantined'
      ) as quarantined`);
  return result.rows[0] ?? { pending: null, last: null, rejected: 0, quarantined: 0 };
}

async function readWaiting(db: Executor): Promise<WaitingEvents[]> {
  const result = await db.execute<WaitingEvents & Record<string, unknown>>(sql`
    select
      ${stale.errorCode} as code,
      min(${stale.error}) as reason,
      sum(${stale.events})::int as events,
      count(distinct ${stale.owner})::int as owners,
      min(${stale.dueAt})::text as "nextAttemptAt"
    from ${staleRecords} ${stale}
    where ${stale.errorCode} is not null
    group by ${stale.errorCode}
    order by 3 desc, ${stale.errorCode}`);
  return result.rows;
}

/**
 * Counts events by outcome. Only those not simply applied are counted; the applied ones are the
 * rest.
 */
async function countOutcomes(db: Executor): Promise<WarehouseStatus['events']> {
  const result = await db.execute<WarehouseStatus['events'] & Record<string, unknown>>(sql`
    with came as materialized (
      select
        ${journal.arrivedAs},
        count(*)::int as events
      from ${journal}
      group by ${journal.arrivedAs}
    ), unhappy as materialized (
      select distinct
        ${settlements.kind},
        ${settlements.recordId}
      from ${settlements}
      where ${settlements.outcome} <> 'applied'
    ), of_unhappy as (${eventsOf(sql`unhappy`)}
    ), settled as materialized (
      select
        e.outcome,
        count(*)::int as events
      from of_unhappy o
        cross join lateral (
          select ${events.outcome}
          from ${events}
          where ${events.id} = o.id
          offset 0
        ) e
      group by e.outcome
    ), counted as (
      select
        ${of('came', 'pending')} as waited,
        ${of('came', 'applied')} as applied,
        ${of('came', 'ignored')} as ignored,
        ${of('came', 'superseded')} + ${of('settled', 'superseded')} as superseded,
        ${of('came', 'dead')} + ${of('settled', 'dead')} as dead,
        ${of('settled', 'missing')} as missing,
        ${of('settled', 'superseded')}
          + ${of('settled', 'dead')}
          + ${of('settled', 'missing')} as not_applied,
        (
          select coalesce(sum(${staleRecords.events}), 0)::int
          from ${staleRecords}
        ) as pending
    )
    select
      pending,
      applied + greatest(0, waited - not_applied - pending) as applied,
      superseded,
      ignored,
      dead,
      missing
    from counted`);
  const [counts] = result.rows;
  if (counts === undefined) throw new Error('a count without a row');
  return counts;
}

/** Counts the events of a step of the statement above with an outcome. */
function of(step: 'came' | 'settled', outcome: EventOutcome): SQL {
  const column = step === 'came' ? 'arrived_as' : 'outcome';
  return sql.raw(`coalesce((
          select events
          from ${step}
          where ${column} = '${outcome}'
        ), 0)`);
}

/** Reads whole runs of a kind: how many are running, and the last that ended. */
export async function readRuns(db: Executor, kind: RunKind): Promise<RunsStatus> {
  return { running: await countRunning(db, kind), last: await readLastRun(db, kind) };
}

/** Whether a row is that of a whole run of a kind. */
const isWhole = (kind: RunKind): SQL | undefined =>
  and(isNull(runs.resource), isNull(runs.companyId), eq(runs.kind, kind));

async function countRunning(db: Executor, kind: RunKind): Promise<number> {
  const [running] = await db
    .select({ count: sql<number>`count(*)::int` })
    .from(runs)
    .where(and(isWhole(kind), sql`${runs.state} = 'running'`));
  return running?.count ?? 0;
}

async function readLastRun(db: Executor, kind: RunKind): Promise<RunsStatus['last']> {
  const { runId, state, finishedAt, error } = runs;
  const [last] = await db
    .select({ runId, state, finishedAt: sql<string>`${finishedAt}::text`, error })
    .from(runs)
    .where(and(isWhole(kind), isNotNull(finishedAt)))
    .orderBy(desc(finishedAt))
    .limit(1);
  return last ?? null;
}

async function readShortfall(db: Executor): Promise<WarehouseStatus['intervalShortfall']> {
  const { intervalsTold, intervalsFound } = settlements;
  const missing = sql`coalesce(sum(${intervalsTold} - ${intervalsFound}), 0)`;
  const [shortfall] = await db
    .select({ events: sql<number>`count(*)::int`, readings: sql<number>`${missing}::float8` })
    .from(settlements)
    .where(sql`${intervalsFound} < ${intervalsTold}`);
  return shortfall ?? { events: 0, readings: 0 };
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
export async function countRows(db: Executor): Promise<Record<string, number>> {
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
        extract(epoch from at - ${events.receivedAt})::float8 * 1000 as ms
      from ${events}
        cross join lateral (
          values
            ('row', ${events.recordedAt}),
            ('record', case when ${events.outcome} = 'applied' then ${events.appliedAt} end)
        ) as t (step, at)
      where ${events.receivedAt} >= ${since}::timestamptz
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

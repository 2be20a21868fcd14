import { count, desc, ne, sql } from 'drizzle-orm';
import { probeEventType, type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import { batches } from '../../contract/limits.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import type { Silence, WarehouseHealth } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { runs } from '../schema/reads.ts';
import { connections, documents, intervals } from '../schema/utility.ts';
import { consoleBounds, mostCounted } from './bounds.ts';

/** Outcomes and delays of the events that were received in one hour. */
export type HourOfEvents = {
  /** When the hour began, as ISO 8601 in UTC. */
  readonly hour: string;
  readonly outcomes: Partial<Record<EventOutcome, number>>;
  /** Events of this and earlier hours that were still pending at the end of this hour. */
  readonly waiting: number;
  /** Seconds from receipt to the row in the journal, and to the read; null without events. */
  readonly rowP50: number | null;
  readonly rowP99: number | null;
  readonly recordP50: number | null;
  readonly recordP99: number | null;
};

/** Groups the newest events of the last 24 hours by the hour of their receipt, oldest hour first. */
export async function readArrivals(db: Executor): Promise<HourOfEvents[]> {
  const { rows } = await db.execute<HourOfEvents>(sql`
    with hours as (
      select hour as began
      from generate_series(
        date_bin('1 hour', now(), 'epoch') - interval '23 hours', now(), interval '1 hour'
      ) as hour
    ), newest as (
      select
        outcome,
        date_bin('1 hour', received_at, 'epoch') as hour,
        case when outcome <> 'pending'
          then date_bin('1 hour', coalesce(settled_at, recorded_at), 'epoch')
        end as ended,
        extract(epoch from recorded_at - received_at)::float8 as row_after,
        extract(epoch from settled_at - received_at)::float8 as record_after
      from ${journal}
      where received_at between date_bin('1 hour', now(), 'epoch') - interval '23 hours'
        and 'infinity'
      order by received_at desc
      limit ${consoleBounds.arrivalsMax}
    ), counted as (
      select hour, outcome, count(*) as events
      from newest
      group by hour, outcome
    ), ended as (
      select ended as ended_at, count(*) as endings
      from newest
      where ended is not null
      group by ended
    )
    select
      to_char(began at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"') as hour,
      (
        select coalesce(jsonb_object_agg(outcome, events), '{}')
        from counted
        where counted.hour = began
      ) as outcomes,
      (
        sum(count(outcome)) over (order by began)
        - (select coalesce(sum(endings), 0) from ended where ended_at <= began)
      )::int as waiting,
      percentile_cont(0.5) within group (order by row_after) as "rowP50",
      percentile_cont(0.99) within group (order by row_after) as "rowP99",
      percentile_cont(0.5) within group (order by record_after) as "recordP50",
      percentile_cont(0.99) within group (order by record_after) as "recordP99"
    from hours
      left join newest on newest.hour = began
    group by began
    order by began`);
  return rows;
}

/**
 * Reads how long the latest events took from their receipt to their row in the journal, and to the
 * read of their record. A read that settles several events counts once, for the first of them.
 */
export async function readDelays(db: Executor): Promise<WarehouseHealth['delays']> {
  const { rows } = await db.execute<{ step: 'row' | 'record'; p50: number; p99: number }>(sql`
    with newest as (
      select id, kind, record_id, outcome, received_at, recorded_at, settled_at
      from ${journal}
      order by received_at desc
      limit ${batches.delaysRead}
    ), took as (
      select 'row' as step, recorded_at - received_at as took
      from newest
      union all
      select 'record', settled_at - min(received_at)
      from newest
      where outcome = 'applied' and settled_at is not null
      group by kind, case kind when 'interval' then id else record_id end, settled_at
    )
    select
      step,
      percentile_cont(0.5) within group (order by extract(epoch from took)::float8) as p50,
      percentile_cont(0.99) within group (order by extract(epoch from took)::float8) as p99
    from took
    group by step`);
  const of = (wanted: 'row' | 'record') => {
    const found = rows.find(({ step }) => step === wanted);
    return found === undefined ? null : { p50: found.p50, p99: found.p99 };
  };
  return { row: of('row'), record: of('record') };
}

/** Measures whether events arrive. Probes are not events of the service. */
export async function readSilence(db: Executor, most: number = mostCounted): Promise<Silence> {
  const { rows } = await db.execute<Pick<Silence, 'lastEventAt' | 'quietSeconds'>>(sql`
    select
      last.at as "lastEventAt",
      extract(epoch from clock_timestamp() - coalesce(last.at, first.at))::float8
        as "quietSeconds"
    from (select max(received_at) as at from ${journal} where type <> ${probeEventType}) last
      cross join (
        select min(started_at) as at
        from ${runs}
        where company_id is null and resource is null
      ) first`);
  const { lastEventAt, quietSeconds } = rows[0] ?? { lastEventAt: null, quietSeconds: null };
  return {
    lastEventAt,
    quietSeconds: quietSeconds === null ? null : Math.max(0, quietSeconds),
    ...(await readMissed(db, lastEventAt, most)),
  };
}

/**
 * Counts changes that runs found since the last event, or in the last day if that is longer. A part
 * of a run at whose end an event waited that had been accepted a minute before the part began is
 * left out: the events of its changes may have waited, too.
 */
async function readMissed(db: Executor, lastEventAt: string | null, most: number) {
  type Missed = Pick<Silence, 'missedRows' | 'missedCompanies' | 'missedAt'>;
  const { rows } = await db.execute<Missed>(sql`
    select
      coalesce(sum(rows_missed), 0)::int as "missedRows",
      count(distinct company_id)::int as "missedCompanies",
      max(finished_at) as "missedAt"
    from (
      select part.rows_missed, part.company_id, part.finished_at
      from ${runs} part
      where part.company_id is not null
        and part.rows_missed > 0
        and part.finished_at
          >= least(now() - interval '1 day', ${lastEventAt ?? '-infinity'}::timestamptz)
        and (
          select recorded_at
          from ${journal}
          where received_at < part.started_at - make_interval(secs => ${recordPolicy.lagSeconds})
          order by received_at desc
          limit 1
        ) > part.finished_at is not true
      order by part.finished_at desc
      limit ${most}
    ) missed`);
  return rows[0] ?? { missedRows: 0, missedCompanies: 0, missedAt: null };
}

/** Number of the newest events in which `typesSeen` looks for types. */
export const typesAmong = 10_000;

/** Counts the latest events by type, without probes, which are not events of the service. */
export async function typesSeen(db: Executor): Promise<ReadonlyMap<string, number>> {
  const newest = db
    .select({ type: journal.type })
    .from(journal)
    .orderBy(desc(journal.receivedAt), desc(journal.id))
    .limit(typesAmong)
    .as('newest');
  const seen = await db
    .select({ type: newest.type, events: count() })
    .from(newest)
    .where(ne(newest.type, probeEventType))
    .groupBy(newest.type);
  return new Map(seen.map(({ type, events }) => [type, events]));
}

const tables = { connection: connections, document: documents, interval: intervals };

/** Lists the kinds of events whose records the warehouse holds. */
export async function kindsHeld(db: Executor): Promise<RecordEventKind[]> {
  const held: RecordEventKind[] = [];
  for (const kind of recordEventKinds) {
    const [any] = await db.select({ one: sql`1` }).from(tables[kind]).limit(1);
    if (any !== undefined) held.push(kind);
  }
  return held;
}

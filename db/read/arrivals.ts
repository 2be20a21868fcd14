import { and, between, count, desc, eq, isNotNull, ne, sql } from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import { probeEventType, type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import { batches } from '../../contract/limits.ts';
import { type EventOutcome, eventOutcomes } from '../../contract/names.ts';
import type { WarehouseHealth } from '../../health/measured.ts';
import { literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { connections, documents, intervals } from '../schema/utility.ts';
import { consoleBounds } from './bounds.ts';

/** Outcomes and delays of the events that were received in one hour. */
export type HourOfEvents = Awaited<ReturnType<typeof readArrivals>>[number];

/** When the first of 24 hours began. The last of them is the hour that has not ended. */
const firstHour = sql`date_bin('1 hour', now(), 'epoch') - interval '23 hours'`;

/** Groups the newest events of the last 24 hours by the hour of their receipt, oldest hour first. */
export async function readArrivals(db: Executor) {
  const { outcome, receivedAt, recordedAt, settledAt } = journal;
  const hours = db
    .$with('hours')
    .as(
      db
        .select({ began: sql`hour`.as('began') })
        .from(sql`generate_series(${firstHour}, now(), interval '1 hour') as hour`),
    );
  const newest = db.$with('newest').as(
    db
      .select({
        outcome,
        hour: sql<string>`date_bin('1 hour', received_at, 'epoch')`.as('hour'),
        ended: sql<string>`case when outcome <> 'pending'
          then date_bin('1 hour', coalesce(settled_at, recorded_at), 'epoch')
        end`.as('ended'),
        rowAfter: sql`extract(epoch from ${recordedAt} - ${receivedAt})::float8`.as('row_after'),
        recordAfter: sql`extract(epoch from ${settledAt} - ${receivedAt})::float8`.as(
          'record_after',
        ),
      })
      .from(journal)
      // Not clock_timestamp(), which changes during the statement, so that no index serves it. With
      // both bounds and a literal limit, the planner expects few rows even without statistics.
      .where(between(receivedAt, firstHour, sql`'infinity'`))
      .orderBy(desc(receivedAt))
      .limit(literal(consoleBounds.arrivalsMax)),
  );
  const ended = db.$with('ended').as(
    db
      .select({ endedAt: sql`ended`.as('ended_at'), endings: count().as('endings') })
      .from(newest)
      .where(isNotNull(newest.ended))
      .groupBy(sql`ended`),
  );
  const percentile = (share: number, of: 'row_after' | 'record_after') => sql<number | null>`
    percentile_cont(${share}::float8) within group (order by ${sql.identifier(of)})`;
  const counts = eventOutcomes.map(
    (one) => sql`${one}::text, nullif(count(*) filter (where outcome = ${one}), 0)`,
  );
  return await db
    .with(hours, newest, ended)
    .select({
      /** When the hour began, as ISO 8601 in UTC. */
      hour: sql<string>`to_char(${hours.began} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"')`,
      outcomes: sql<
        Partial<Record<EventOutcome, number>>
      >`jsonb_strip_nulls(jsonb_build_object(${sql.join(counts, sql`, `)}))`,
      /** Events of this and earlier hours that were still pending at the end of this hour. */
      waiting: sql<number>`(
        sum(count(${newest.outcome})) over (order by ${hours.began})
        - (select coalesce(sum(endings), 0) from ended where ended_at <= ${hours.began})
      )::int`,
      /** Seconds from receipt to the row in the journal, and to the read; null without events. */
      rowP50: percentile(0.5, 'row_after'),
      rowP99: percentile(0.99, 'row_after'),
      recordP50: percentile(0.5, 'record_after'),
      recordP99: percentile(0.99, 'record_after'),
    })
    .from(hours)
    .leftJoin(newest, eq(newest.hour, hours.began))
    .groupBy(hours.began)
    .orderBy(hours.began);
}

/**
 * Reads how long the latest events took from their receipt to their row in the journal, and to the
 * read of their record. A read that settles several events counts once, for the first of them.
 */
export async function readDelays(db: Executor): Promise<WarehouseHealth['delays']> {
  const { receivedAt, recordedAt, settledAt, outcome, kind, id, recordId } = journal;
  const newest = db
    .$with('newest')
    .as(
      db
        .select({ receivedAt, recordedAt, settledAt, outcome, kind, id, recordId })
        .from(journal)
        .orderBy(desc(receivedAt))
        .limit(literal(batches.delaysRead)),
    );
  const rows = db
    .select({
      step: sql<'row' | 'record'>`'row'`.as('step'),
      took: sql`recorded_at - received_at`.as('took'),
    })
    .from(newest);
  const records = db
    .select({ step: sql<'row' | 'record'>`'record'`, took: sql`settled_at - min(received_at)` })
    .from(newest)
    .where(and(eq(newest.outcome, 'applied'), isNotNull(newest.settledAt)))
    .groupBy(sql`kind, case kind when 'interval' then id else record_id end, settled_at`);
  const took = unionAll(rows, records).as('took');
  const percentile = (share: number) => sql<number>`percentile_cont(${share}::float8)
    within group (order by extract(epoch from ${took.took})::float8)`;
  const delays = await db
    .with(newest)
    .select({ step: took.step, p50: percentile(0.5), p99: percentile(0.99) })
    .from(took)
    .groupBy(took.step);
  const of = (step: 'row' | 'record') => {
    const found = delays.find((row) => row.step === step);
    return found === undefined ? null : { p50: found.p50, p99: found.p99 };
  };
  return { row: of('row'), record: of('record') };
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

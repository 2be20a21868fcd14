import { and, ne, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type { DeliveredEvent, Replay } from '../../contract/delivery.ts';
import { type EventKind, probeEventType } from '../../contract/event.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { array, type RowOf } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { isRefusal } from '../failures.ts';
import { halving } from '../halving.ts';
import { printedBytesMax } from '../record/printed-size.ts';
import { events, journal, settlements, staleRecords } from '../schema/metersync.ts';

/**
 * Which events of the journal; a bound that is absent bounds nothing. Times are ISO 8601, of the
 * receiver's clock.
 */
export interface EventFilter {
  readonly ids?: readonly string[] | undefined;
  readonly type?: string | undefined;
  readonly outcome?: EventOutcome | undefined;
  readonly recordId?: string | undefined;
  readonly companyId?: string | undefined;
  readonly code?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

/** An event as the journal has it, less its payload. Times are text with microseconds. */
export interface JournalledEvent {
  readonly id: string;
  readonly type: string;
  readonly outcome: EventOutcome;
  readonly recordId: string | null;
  readonly companyId: string | null;
  readonly occurredAt: string | null;
  readonly rangeStart: string | null;
  readonly rangeEnd: string | null;
  readonly receivedAt: string;
  readonly recordedAt: string;
  readonly appliedAt: string | null;
  readonly error: string | null;
  readonly errorCode: string | null;
  readonly attempts: number;
  readonly nextAttemptAt: string | null;
  readonly intervalCount: number | null;
  readonly intervalsFound: number | null;
  readonly workflowId: string | null;
  readonly workflowRunId: string | null;
  readonly payloadDroppedAt: string | null;
}

/**
 * With what was signed: JSON as Postgres prints it, or the bytes where it cannot hold them; neither
 * once dropped.
 */
export interface WholeEvent extends JournalledEvent {
  readonly payload: string | null;
  readonly body: Buffer | null;
}

const event = alias(events, 'event');

/** A `JournalledEvent` of the view. Counts are numbers: a bigint would be text. */
const columns: SQL = sql`
      ${event.id},
      ${event.type},
      ${event.outcome},
      ${event.recordId} as "recordId",
      ${event.companyId} as "companyId",
      ${event.occurredAt} as "occurredAt",
      ${event.rangeStart} as "rangeStart",
      ${event.rangeEnd} as "rangeEnd",
      ${event.receivedAt} as "receivedAt",
      ${event.recordedAt} as "recordedAt",
      ${event.appliedAt} as "appliedAt",
      ${event.error},
      ${event.errorCode} as "errorCode",
      ${event.attempts},
      ${event.nextAttemptAt} as "nextAttemptAt",
      ${event.intervalCount}::float8 as "intervalCount",
      ${event.intervalsFound}::float8 as "intervalsFound",
      ${event.workflowId} as "workflowId",
      ${event.workflowRunId} as "workflowRunId",
      ${event.payloadDroppedAt} as "payloadDroppedAt"`;

/** Whether an event matches; bounds that are absent are no part of the statement. */
function matching(filter: EventFilter): SQL {
  const { ids, type, outcome, recordId, companyId, code, since, until } = filter;
  const bounds: readonly (SQL | undefined)[] = [
    ids && sql`${event.id} = any(${array(ids, 'text')})`,
    given(type, (value) => sql`${event.type} = ${value}`),
    given(outcome, (value) => sql`${event.outcome} = ${value}`),
    given(recordId, (value) => sql`${event.recordId} = ${value}`),
    given(companyId, (value) => sql`${event.companyId} = ${value}::uuid`),
    given(code, (value) => sql`${event.errorCode} = ${value}`),
    given(since, (value) => sql`${event.receivedAt} >= ${value}::timestamptz`),
    given(until, (value) => sql`${event.receivedAt} < ${value}::timestamptz`),
  ];
  return and(...bounds) ?? sql`true`;
}

/** A bound of what is given, an empty text too. */
const given = (value: string | undefined, bound: (value: string) => SQL): SQL | undefined =>
  value === undefined ? undefined : bound(value);

/**
 * Ids of the events of records that had to be read, as stale records and settlements name them.
 * With `offset 0` the events of each record are looked up, and not all that are pending.
 */
export const eventsOf = (records: SQL): SQL => sql`
      select waiting.id
      from ${records} r
        cross join lateral (
          select ${journal.id}
          from ${journal}
          where ${journal.recordId} = r.record_id
            and ${journal.kind} = r.kind
            and ${journal.arrivedAs} = 'pending'
          offset 0
        ) waiting
      where r.kind <> 'interval'
      union all
      select r.record_id
      from ${records} r
      where r.kind = 'interval'`;

/** Records whose events were settled so. The outcome is no parameter: a partial index serves it. */
const settledAs = (outcome: 'missing' | 'dead'): SQL => sql`(
        select distinct
          ${settlements.kind},
          ${settlements.recordId}
        from ${settlements}
        where ${settlements.outcome} = ${sql.raw(`'${outcome}'`)}
      )`;

/** Events that were so when they came. */
const arrivedAs = (outcome: 'dead' | 'ignored'): SQL => sql`
      select ${journal.id}
      from ${journal}
      where ${journal.arrivedAs} = ${sql.raw(`'${outcome}'`)}`;

/**
 * Ids of the events that may have an outcome of which few are: those need not be looked for among
 * all.
 */
const fewOf: Readonly<Partial<Record<EventOutcome, SQL>>> = {
  pending: eventsOf(sql`${staleRecords}`),
  missing: eventsOf(settledAs('missing')),
  dead: sql`${eventsOf(settledAs('dead'))}
      union all${arrivedAs('dead')}`,
  ignored: arrivedAs('ignored'),
};

/**
 * Where those are: the few of a record, or of an outcome that few have, are picked before the
 * newest of them are.
 */
function amongThem({ recordId, outcome }: EventFilter): SQL {
  if (recordId !== undefined)
    return sql`(
      select *
      from ${events}
      where ${events.recordId} = ${recordId}
      offset 0
    ) ${event}`;
  const few = outcome === undefined ? undefined : fewOf[outcome];
  if (few === undefined) return sql`${events} ${event}`;
  return sql`(
      select distinct id
      from (${few}
      ) ids
    ) few
      cross join lateral (
        select *
        from ${events}
        where ${events.id} = few.id
        offset 0
      ) ${event}`;
}

/** Events of the journal, newest first; `before` is the id of the last event of the page before. */
export async function listEvents(
  db: Executor,
  filter: EventFilter,
  page: { limit: number; before?: string | undefined },
): Promise<JournalledEvent[]> {
  const { limit, before } = page;
  const earlier =
    before === undefined
      ? sql`true`
      : sql`(${event.receivedAt}, ${event.id}) < (
        select
          ${journal.receivedAt},
          ${journal.id}
        from ${journal}
        where ${journal.id} = ${before}
      )`;
  const result = await db.execute<JournalledEvent & Record<string, unknown>>(sql`
    select ${columns}
    from ${amongThem(filter)}
    where ${matching(filter)}
      and ${earlier}
    order by ${event.receivedAt} desc, ${event.id} desc
    limit ${limit}`);
  return result.rows;
}

/**
 * What Postgres prints of a payload, unless it is more than any that is recorded today: earlier
 * versions kept payloads whose numbers unfold to gigabytes. Such a one is NULL, and past a gigabyte
 * refused.
 */
const printed = (payload: typeof event.payload | typeof journal.payload): SQL => sql`
      cross join lateral (
        select ${payload}::text as text
        offset 0
      ) whole
      cross join lateral (
        select case
          when octet_length(whole.text) <= ${printedBytesMax} then whole.text
        end as payload
      ) printed`;

/**
 * Laid out where that is no more than some megabytes: each line of what is nested is indented by
 * its depth.
 */
const laidOut: SQL = sql`case
        when octet_length(printed.payload) <= 100000
          and length(printed.payload) - length(translate(printed.payload, '[{', '')) <= 200
          then jsonb_pretty(${event.payload})
        else printed.payload
      end`;

/**
 * An event with what was signed; with neither payload nor body where that is too large to be read,
 * or was dropped.
 */
export async function readEvent(db: Executor, id: string): Promise<WholeEvent | undefined> {
  try {
    return await readWhole(db, id, { payload: laidOut, from: printed(event.payload) });
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return await readWhole(db, id, { payload: sql`null`, from: sql`` });
  }
}

async function readWhole(
  db: Executor,
  id: string,
  { payload, from }: { readonly payload: SQL; readonly from: SQL },
): Promise<WholeEvent | undefined> {
  const result = await db.execute<WholeEvent & Record<string, unknown>>(sql`
    select ${columns},
      ${payload} as payload,
      ${event.body}
    from ${events} ${event}${from}
    where ${event.id} = ${id}`);
  return result.rows[0];
}

/** Every event of a record, oldest first. */
export async function eventsOfRecord(
  db: Executor,
  kind: Exclude<EventKind, 'ignored'>,
  recordId: string,
): Promise<JournalledEvent[]> {
  const result = await db.execute<JournalledEvent & Record<string, unknown>>(sql`
    select ${columns}
    from ${events} ${event}
    where ${event.recordId} = ${recordId}
      and ${event.kind} = ${kind}
    order by ${event.receivedAt}, ${event.id}`);
  return result.rows;
}

/**
 * A kept event, ready to be recorded again; `event` is undefined when what was signed was dropped,
 * or is too large.
 */
export interface KeptEvent {
  readonly id: string;
  readonly outcome: EventOutcome;
  readonly dropped: boolean;
  readonly event: DeliveredEvent | undefined;
}

/** Where a page of kept events ends. */
export interface KeptCursor {
  readonly receivedAt: string;
  readonly id: string;
}

/** Kept events that match, oldest first, with what was signed: the next page after the cursor. */
export async function keptEvents(
  db: Executor,
  filter: EventFilter,
  replay: Replay,
  page: { limit: number; after: KeptCursor | undefined },
): Promise<{ events: KeptEvent[]; next: KeptCursor | undefined }> {
  const rows = await readKept(db, filter, replay, page);
  const last = rows.at(-1);
  const whole = rows.length === page.limit && last !== undefined;
  const signed = await readSigned(
    db,
    rows.flatMap(({ id, dropped }) => (dropped ? [] : [id])),
  );
  return {
    events: rows.map(({ id, outcome, seconds, iso, dropped }) => {
      const body = signed.get(id);
      const delivered =
        body === undefined ? undefined : { id, timestamp: seconds, receivedAt: iso, body };
      return { id, outcome, dropped, event: delivered };
    }),
    next: whole ? { receivedAt: last.received_at, id: last.id } : undefined,
  };
}

type KeptRow = RowOf<typeof events.id | typeof events.outcome | typeof events.receivedAt> & {
  readonly seconds: number;
  readonly iso: string;
  readonly dropped: boolean;
};

async function readKept(
  db: Executor,
  filter: EventFilter,
  replay: Replay,
  { limit, after }: { limit: number; after: KeptCursor | undefined },
): Promise<KeptRow[]> {
  const later =
    after === undefined
      ? sql`true`
      : sql`(${event.receivedAt}, ${event.id}) > (${after.receivedAt}::timestamptz, ${after.id})`;
  // Ids are asked for one by one, and answered one by one: what cannot be replayed is said of each.
  const chosen =
    replay === 'all' || filter.ids !== undefined ? sql`true` : sql`${event.outcome} <> 'applied'`;
  const result = await db.execute<KeptRow>(sql`
    select
      ${event.id},
      ${event.outcome},
      ${event.receivedAt},
      floor(extract(epoch from ${event.receivedAt}))::float8 as seconds,
      to_char(${event.receivedAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as iso,
      ${event.payload} is null and ${event.body} is null as dropped
    from ${amongThem(filter)}
    where ${matching(filter)}
      and ${chosen}
      and ${later}
    order by ${event.receivedAt}, ${event.id}
    limit ${limit}`);
  return result.rows;
}

/** Payloads read by one statement: those of today are 30 MB together at most. */
const payloadsAtOnce = 20;

/**
 * What was signed of events, by their ids; those that are too large to be read are left out, and
 * spoil no other.
 */
async function readSigned(
  db: Executor,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const signed = new Map<string, string>();
  for (let from = 0; from < ids.length; from += payloadsAtOnce) {
    const read = async (some: readonly string[]): Promise<void> => {
      for (const { id, payload, body } of await readBytes(db, some)) {
        const text = payload ?? body?.toString('utf8');
        if (text !== undefined) signed.set(id, text);
      }
    };
    await halving(ids.slice(from, from + payloadsAtOnce), read, () => {});
  }
  return signed;
}

type Bytes = RowOf<typeof journal.id | typeof journal.body> & { readonly payload: string | null };

async function readBytes(db: Executor, ids: readonly string[]): Promise<Bytes[]> {
  const result = await db.execute<Bytes>(sql`
    select
      ${journal.id},
      printed.payload,
      ${journal.body}
    from ${journal}${printed(journal.payload)}
    where ${journal.id} = any(${array(ids, 'text')})`);
  return result.rows;
}

/** Types of the events that ever came. Probes are no events of the service. */
export async function typesSeen(db: Executor): Promise<string[]> {
  const seen = await db
    .select({ type: journal.type })
    .from(journal)
    .where(ne(journal.type, probeEventType))
    .groupBy(journal.type);
  return seen.map(({ type }) => type);
}

/** How many of the given events have which outcome. */
export async function outcomesOf(
  db: Executor,
  ids: readonly string[],
): Promise<Partial<Record<EventOutcome, number>>> {
  const counts = await db
    .select({ outcome: events.outcome, count: sql<number>`count(*)::int` })
    .from(events)
    .where(sql`${events.id} = any(${array(ids, 'text')})`)
    .groupBy(events.outcome)
    .orderBy(events.outcome);
  return Object.fromEntries(counts.map(({ outcome, count }) => [outcome, count]));
}

import { type SQL, sql } from 'drizzle-orm';
import type { DeliveredEvent, Replay } from '../../contract/delivery.ts';
import { type EventKind, probeEventType } from '../../contract/event.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { isRefusal } from '../failures.ts';
import { halving } from '../halving.ts';
import { printedBytesMax } from '../record/printed-size.ts';

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

const columns: SQL = sql.raw(
  [
    'id',
    'type',
    'outcome',
    'record_id as "recordId"',
    'company_id as "companyId"',
    'occurred_at as "occurredAt"',
    'range_start as "rangeStart"',
    'range_end as "rangeEnd"',
    'received_at as "receivedAt"',
    'recorded_at as "recordedAt"',
    'applied_at as "appliedAt"',
    'error',
    'error_code as "errorCode"',
    'attempts',
    'next_attempt_at as "nextAttemptAt"',
    'interval_count::float8 as "intervalCount"',
    'intervals_found::float8 as "intervalsFound"',
    'workflow_id as "workflowId"',
    'workflow_run_id as "workflowRunId"',
    'payload_dropped_at as "payloadDroppedAt"',
  ].join(', '),
);

function matching(filter: EventFilter): SQL {
  const bounds: SQL[] = [];
  if (filter.ids !== undefined) bounds.push(sql`id = any(${array(filter.ids, 'text')})`);
  if (filter.type !== undefined) bounds.push(sql`type = ${filter.type}`);
  if (filter.outcome !== undefined) bounds.push(sql`outcome = ${filter.outcome}`);
  if (filter.recordId !== undefined) bounds.push(sql`record_id = ${filter.recordId}`);
  if (filter.companyId !== undefined) bounds.push(sql`company_id = ${filter.companyId}::uuid`);
  if (filter.code !== undefined) bounds.push(sql`error_code = ${filter.code}`);
  if (filter.since !== undefined) bounds.push(sql`received_at >= ${filter.since}::timestamptz`);
  if (filter.until !== undefined) bounds.push(sql`received_at < ${filter.until}::timestamptz`);
  return bounds.length === 0 ? sql`true` : sql.join(bounds, sql` and `);
}

/** Ids of the events of records that had to be read, as stale records and settlements name them. */
export const eventsOf = (records: SQL): SQL => sql`
  select e.id
  from ${records} r cross join lateral (
    select id from metersync.journal
    where record_id = r.record_id and kind = r.kind and arrived_as = 'pending' offset 0
  ) e
  where r.kind <> 'interval'
  union all
  select record_id from ${records} r where r.kind = 'interval'`;

/**
 * Ids of the events that may have an outcome of which few are: those need not be looked for among
 * all.
 */
const fewOf: Readonly<Partial<Record<EventOutcome, SQL>>> = {
  pending: eventsOf(sql`metersync.stale_records`),
  missing: eventsOf(
    sql`(select distinct kind, record_id from metersync.settlements where outcome = 'missing')`,
  ),
  dead: sql`${eventsOf(sql`(select distinct kind, record_id from metersync.settlements where outcome = 'dead')`)}
    union all
    select id from metersync.journal where arrived_as = 'dead'`,
  ignored: sql`select id from metersync.journal where arrived_as = 'ignored'`,
};

/**
 * Where those are: the few of a record, or of an outcome that few have, are picked before the
 * newest of them are.
 */
function amongThem({ recordId, outcome }: EventFilter): SQL {
  if (recordId !== undefined)
    return sql`(select * from metersync.events where record_id = ${recordId} offset 0) of_record`;
  const few = outcome === undefined ? undefined : fewOf[outcome];
  if (few === undefined) return sql`metersync.events`;
  return sql`(select distinct id as few from (${few}) ids) few cross join lateral (
    select * from metersync.events where id = few.few offset 0
  ) of_few`;
}

/** Events of the journal, newest first; `before` is the id of the last event of the page before. */
export async function listEvents(
  db: Executor,
  filter: EventFilter,
  page: { limit: number; before?: string | undefined },
): Promise<JournalledEvent[]> {
  const earlier =
    page.before === undefined
      ? sql`true`
      : sql`(received_at, id) < (select received_at, id from metersync.journal where id = ${page.before})`;
  const result = await db.execute<JournalledEvent & Record<string, unknown>>(sql`
    select ${columns} from ${amongThem(filter)} where ${matching(filter)} and ${earlier}
    order by received_at desc, id desc limit ${page.limit}`);
  return result.rows;
}

/**
 * What Postgres prints of a payload, unless it is more than any that is recorded today: earlier
 * versions kept payloads whose numbers unfold to gigabytes. Such a one is NULL, and past a gigabyte
 * refused.
 */
const printed: SQL = sql`lateral (select payload::text as text offset 0) whole
  cross join lateral (select case when octet_length(whole.text) <= ${printedBytesMax} then whole.text end as payload) printed`;

/**
 * Laid out where that is no more than some megabytes: each line of what is nested is indented by
 * its depth.
 */
const laidOut: SQL = sql`case
  when octet_length(printed.payload) <= 100000
    and length(printed.payload) - length(translate(printed.payload, '[{', '')) <= 200 then jsonb_pretty(e.payload)
  else printed.payload end`;

/**
 * An event with what was signed; with neither payload nor body where that is too large to be read,
 * or was dropped.
 */
export async function readEvent(db: Executor, id: string): Promise<WholeEvent | undefined> {
  const read = async (payload: SQL, from: SQL) =>
    await db.execute<WholeEvent & Record<string, unknown>>(sql`
      select ${columns}, ${payload} as payload, body from metersync.events e ${from} where id = ${id}`);
  try {
    return (await read(laidOut, sql`cross join ${printed}`)).rows[0];
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return (await read(sql`null`, sql``)).rows[0];
  }
}

/** Every event of a record, oldest first. */
export async function eventsOfRecord(
  db: Executor,
  kind: Exclude<EventKind, 'ignored'>,
  recordId: string,
): Promise<JournalledEvent[]> {
  const result = await db.execute<JournalledEvent & Record<string, unknown>>(sql`
    select ${columns} from metersync.events where record_id = ${recordId} and kind = ${kind}
    order by received_at, id`);
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
  const later =
    page.after === undefined
      ? sql`true`
      : sql`(received_at, id) > (${page.after.receivedAt}::timestamptz, ${page.after.id})`;
  // Ids are asked for one by one, and answered one by one: what cannot be replayed is said of each.
  const chosen =
    replay === 'all' || filter.ids !== undefined ? sql`true` : sql`outcome <> 'applied'`;
  const result = await db.execute<{
    id: string;
    outcome: EventOutcome;
    received_at: string;
    seconds: number;
    iso: string;
    dropped: boolean;
  }>(sql`
    select id, outcome, received_at, floor(extract(epoch from received_at))::float8 as seconds,
      to_char(received_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as iso,
      payload is null and body is null as dropped
    from ${amongThem(filter)} where ${matching(filter)} and ${chosen} and ${later}
    order by received_at, id limit ${page.limit}`);
  const last = result.rows.at(-1);
  const whole = result.rows.length === page.limit && last !== undefined;
  const signed = await readSigned(
    db,
    result.rows.flatMap(({ id, dropped }) => (dropped ? [] : [id])),
  );
  return {
    events: result.rows.map(({ id, outcome, seconds, iso, dropped }) => {
      const body = signed.get(id);
      const event =
        body === undefined ? undefined : { id, timestamp: seconds, receivedAt: iso, body };
      return { id, outcome, dropped, event };
    }),
    next: whole ? { receivedAt: last.received_at, id: last.id } : undefined,
  };
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
      const { rows } = await db.execute<{
        id: string;
        payload: string | null;
        body: Buffer | null;
      }>(sql`
        select id, printed.payload, body from metersync.journal e cross join ${printed}
        where id = any(${array(some, 'text')})`);
      for (const { id, payload, body } of rows) {
        const text = payload ?? body?.toString('utf8');
        if (text !== undefined) signed.set(id, text);
      }
    };
    await halving(ids.slice(from, from + payloadsAtOnce), read, () => {});
  }
  return signed;
}

/** Types of the events that ever came. Probes are no events of the service. */
export async function typesSeen(db: Executor): Promise<string[]> {
  const { rows } = await db.execute<{ type: string }>(sql`
    select type from metersync.journal where type <> ${probeEventType} group by type`);
  return rows.map(({ type }) => type);
}

/** How many of the given events have which outcome. */
export async function outcomesOf(
  db: Executor,
  ids: readonly string[],
): Promise<Partial<Record<EventOutcome, number>>> {
  const result = await db.execute<{ outcome: EventOutcome; count: number }>(sql`
    select outcome, count(*)::int as count from metersync.events
    where id = any(${array(ids, 'text')}) group by outcome order by outcome`);
  return Object.fromEntries(result.rows.map(({ outcome, count }) => [outcome, count]));
}

import { type SQL, sql } from 'drizzle-orm';
import type { SingleEndpoint } from '../../contract/endpoints.ts';
import { type companyEventKinds, deletingTypes, recordEventKinds } from '../../contract/event.ts';
import { batches } from '../../contract/limits.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { array, oneRow } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { gates, journal } from '../schema/metersync.ts';
import { closedEndpoints, isOpen, isServiceClosed, isShared } from './gates.ts';
import { eventKind, ownerOf, queueOf } from './queue.ts';

/** Returns the warehouse's clock, which orders the reads of all workers. */
export async function warehouseNow(db: Executor): Promise<string> {
  const [clock] = await db.select({ now: sql<string>`clock_timestamp()::text` }).from(oneRow);
  return clock?.now ?? '';
}

/** Records of a company that events are pending for. */
export interface PendingRecords extends Record<string, unknown> {
  readonly kind: (typeof companyEventKinds)[number];
  readonly owner: string;
  readonly records: readonly string[];
  /** The records that at least one event created or updated. */
  readonly changed: readonly string[];
  /** The warehouse's clock before anything is read. */
  readonly now: string;
  /** Endpoints with a closed gate. */
  readonly closed: readonly SingleEndpoint[];
}

/**
 * Returns the records of the given events that nobody has tried to read yet, by owner; none behind a
 * closed gate: only the sweep asks whether it can be opened again. Ranges of readings are left to the
 * sweep, which reads a meter in one lane at a time: of two reads of a meter at the same time, the
 * earlier could bring back what the later did not show.
 */
export async function pendingAmong(
  db: Executor,
  eventIds: readonly string[],
): Promise<PendingRecords[]> {
  const { rows } = await prepared(db, 'pendingAmong').execute<PendingRecords>(sql`
    with named as materialized (${eventsOf(eventIds)}
    )
    select
      kind,
      ${ownerOf(sql`e`)} as owner,
      array_agg(distinct record_id) as records,
      coalesce(
        array_agg(distinct record_id) filter (where type <> all(${array(deletingTypes, 'text')})),
        '{}'
      ) as changed,
      clock_timestamp()::text as now,
      ${closedEndpoints} as closed
    from named e
    where outcome = 'pending'
      and attempts = 0
      and kind <> 'interval'
      and not ${isServiceClosed}
      and ${isOpen(sql`e.queue`)}
    group by kind, owner`);
  return rows;
}

/** Whether any of these events is pending. */
export async function anyPending(db: Executor, eventIds: readonly string[]): Promise<boolean> {
  const { rows } = await db.execute(sql`
    with named as materialized (${eventsOf(eventIds)}
    )
    select from named where outcome = 'pending' limit 1`);
  return rows.length > 0;
}

/**
 * Selects events by their ids. It does not ask whether they are pending: with statistics from a time when
 * no event was, Postgres would read an index of all pending events instead.
 */
const eventsOf = (ids: readonly string[]): SQL => sql`
      select kind, type, record_id, queue, outcome, attempts
      from ${journal}
      where id = any(${array(ids, 'text')})`;

/** Records to read, and the warehouse's clock before anything is read. */
export interface DueRecords {
  readonly readAt: string;
  readonly due: readonly string[];
  /** The due records that all their due events deleted. */
  readonly deleted: readonly string[];
  /** Endpoints with a closed gate. */
  readonly closed: readonly SingleEndpoint[];
}

/** Reads the records of a company's due events, those that have been due longest first. */
export async function dueRecords(
  db: Executor,
  kind: 'connections' | 'documents',
  companyId: string,
  limit: number,
): Promise<DueRecords> {
  const { rows } = await prepared(db, 'dueRecords').execute<{
    now: string;
    id: string | null;
    deletes: boolean;
    closed: SingleEndpoint[];
  }>(sql`
    select clock.now, due.record_id as id, due.deletes, ${closedEndpoints} as closed
    from (select clock_timestamp()::text as now) clock
      left join lateral (
        select
          record_id,
          min(due_at) as due_at,
          bool_and(type = any(${array(deletingTypes, 'text')})) as deletes
        from (
          select record_id, type, due_at
          from ${journal}
          where queue = ${queueOf(eventKind[kind], companyId)}
            and due_at <= (select clock_timestamp())
          order by due_at
          limit ${limit * batches.eventsOfRecord}
        ) events
        group by record_id
        order by due_at, record_id
        limit ${limit}
      ) due on true
    order by due.due_at, due.record_id`);
  return {
    readAt: rows[0]?.now ?? '',
    due: rows.flatMap(({ id }) => id ?? []),
    deleted: rows.flatMap(({ id, deletes }) => (deletes ? (id ?? []) : [])),
    closed: rows[0]?.closed ?? [],
  };
}

/**
 * Returns at most `limit` owners of events that were due at `asOf`, longest due first, so that retries of one
 * owner do not delay the others. Leaves out all owners while the gate for all requests is closed, and an owner
 * whose own gate is closed, unless it is time for the next probe. `among` restricts the search.
 */
export async function dueOwners(
  db: Executor,
  kind: CatchUpKind,
  limit: number,
  { asOf, among }: { readonly asOf?: string; readonly among?: readonly string[] } = {},
): Promise<string[]> {
  const most = { limit, asOf: asOf ?? (await warehouseNow(db)) };
  if (among !== undefined) return (await ownersDue(db, kind, among, most)).owners;
  const longest = await ownersDue(db, kind, 'longest', most);
  if (longest.owners.length >= limit || longest.events < batches.dueEvents) return longest.owners;
  // A few owners have many due events: look up each waiting owner once.
  return (await ownersDue(db, kind, 'each', most)).owners;
}

/**
 * Which pending events are searched: the first due event of each of these owners, the
 * `batches.dueEvents` events that have been due longest, or the first due event of every owner.
 */
type DueSource = readonly string[] | 'longest' | 'each';

/** Returns at most `limit` owners of due events, as `dueOwners` does, and how many events were found. */
async function ownersDue(
  db: Executor,
  kind: CatchUpKind,
  source: DueSource,
  { limit, asOf }: { readonly limit: number; readonly asOf: string },
): Promise<{ owners: string[]; events: number }> {
  const prefix = `${eventKind[kind]}/`;
  const { rows } = await prepared(db, 'ownersDue').execute<{
    owner: string | null;
    events: number;
  }>(sql`
    with found as materialized (
      ${queuesDue(kind, source, asOf)}
    )
    select counted.events, due.owner
    from (select count(*)::int as events from found) counted
      left join lateral (
        select substr(queue, ${prefix.length + 1}::int) as owner, min(due_at) as due_at
        from found
        where not ${isServiceClosed}
          and not exists (
            select from ${gates}
            where scope = queue and next_probe_at > ${asOf}::timestamptz
          )
        group by queue
        order by min(due_at), queue
        limit ${limit}
      ) due on true
    order by due.due_at, due.owner`);
  return { owners: rows.flatMap(({ owner }) => owner ?? []), events: rows[0]?.events ?? 0 };
}

/**
 * The statement that finds the queues of due events. Only pending events have a `queue` and a `due_at`. For
 * `each`, it steps through the index from one queue to the next.
 */
function queuesDue(kind: CatchUpKind, source: DueSource, asOf: string): SQL {
  if (source === 'longest')
    return sql`
      select s.queue, s.due_at
      from ${journal} s
      where s.kind = ${eventKind[kind]} and s.due_at <= ${asOf}::timestamptz
      order by s.kind, s.due_at
      limit ${batches.dueEvents}`;
  const first = sql`
        -- The bound is outside: with it inside, Postgres before 18 may look through all due events.
        join lateral (
          select s.due_at
          from ${journal} s
          where s.queue = asked.queue
          order by s.due_at
          limit 1
        ) first_due on first_due.due_at <= ${asOf}::timestamptz`;
  const prefix = `${eventKind[kind]}/`;
  if (source !== 'each')
    return sql`
      select asked.queue, first_due.due_at
      from unnest(${array(
        source.map((owner) => prefix + owner),
        'text',
      )}) as asked (queue)${first}`;
  return sql`
      with recursive asked as (
        select ${prefix} as queue
        union all
        select (
          select s.queue
          from ${journal} s
          where s.queue > asked.queue
          order by s.queue
          limit 1
        )
        from asked
        where asked.queue like ${`${prefix}%`}
      )
      select asked.queue, first_due.due_at
      from asked${first}
      where asked.queue like ${`${prefix}%`}`;
}

/** What the sweep waits for if nothing that it could read is due. */
export interface NextDue {
  /** Time until an event becomes due, or a gate may be probed; null if nothing waits. */
  readonly dueInMs: number | null;
  /** Scopes of shared gates that have to be probed now. */
  readonly probes: readonly string[];
}

/**
 * Returns what becomes due after `asOf`. Also removes gates that it is time to probe although no event is
 * behind them: nothing would show that they can be opened.
 */
export async function nextDue(db: Executor, asOf: string): Promise<NextDue> {
  const { rows } = await db.execute<NextDue & Record<string, unknown>>(sql`
    with idle as (
      delete from ${gates} g
      where not ${isShared}
        and g.next_probe_at <= ${asOf}::timestamptz
        and not exists (select from ${journal} where queue = g.scope)
    ), event as (
      select min(due.due_at) as due_at
      from unnest(${array(recordEventKinds, 'text')}) as kinds (kind)
        cross join lateral (
          select due_at
          from ${journal}
          where kind = kinds.kind and due_at > ${asOf}::timestamptz
          order by kind, due_at
          limit 1
        ) due
    ), probe as (
      select min(next_probe_at) as due_at
      from ${gates}
      where next_probe_at > ${asOf}::timestamptz
    ), next as (
      -- While the gate for all requests is closed, only its next probe counts.
      select coalesce(
          (select next_probe_at from ${gates} where scope = 'service'),
          least(event.due_at, probe.due_at)
        ) as due_at
      from event cross join probe
    )
    select
      case
        when next.due_at is not null
        then ceil(greatest(extract(epoch from next.due_at - clock_timestamp()) * 1000, 0))::float8
      end as "dueInMs",
      array(
        select scope
        from ${gates}
        where ${isShared}
          and next_probe_at <= ${asOf}::timestamptz
        order by scope
      ) as probes
    from next`);
  return rows[0] ?? { dueInMs: null, probes: [] };
}

import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { companyResources } from '../../contract/endpoints.ts';
import { type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import { type FailureCode, failureTypes, parkingCodes } from '../../contract/failures.ts';
import { batches } from '../../contract/limits.ts';
import type { LateWork, ParkedWork, PendingEvents, WaitingEvents } from '../../health/measured.ts';
import { array, isAmong } from '../connection/arrays.ts';
import type { Executor, Row } from '../connection/connect.ts';
import { isShared } from '../queue/gates.ts';
import { gates, journal } from '../schema/metersync.ts';
import { runs } from '../schema/reads.ts';
import { companies } from '../schema/utility.ts';

/** Number of the longest due events among which the oldest is found. Most of them have the same age. */
const dueRead = 100;

/** Counts pending events by kind. */
export async function readPending(
  db: Executor,
  most: number,
): Promise<Readonly<Record<RecordEventKind, PendingEvents>>> {
  const closed = await db
    .selectDistinct({ kind: sql<string>`split_part(${gates.scope}, '/', 1)` })
    .from(gates);
  const pending: Partial<Record<RecordEventKind, PendingEvents>> = {};
  for (const kind of recordEventKinds) {
    const hasClosed = closed.some((gate) => gate.kind === kind);
    pending[kind] = await readKind(db, kind, most, hasClosed);
  }
  return pending as Record<RecordEventKind, PendingEvents>;
}

/**
 * Counts pending events of a kind. Of the events that are due later at most twice `most` are read. Then either
 * both of their counts, waiting and parked, are exact, or one of them has reached `most`. Events behind a
 * closed gate count as waiting or parked.
 */
async function readKind(
  db: Executor,
  kind: RecordEventKind,
  most: number,
  closed: boolean,
): Promise<PendingEvents> {
  const due = closed ? await readDueBesideGates(db, kind, most) : await readDue(db, kind, most);
  const later = await readLater(db, kind, most);
  const behind = closed ? await readBehindGates(db, kind, most) : noneLater;
  const ages = [due.seconds, later.seconds, behind.seconds].filter((age) => age !== null);
  return {
    due: due.due,
    waiting: Math.min(later.waiting + behind.waiting, most),
    parked: Math.min(later.parked + behind.parked, most),
    oldestDueSeconds: due.secondsDue,
    oldestSeconds: ages.length === 0 ? null : Math.max(...ages),
  };
}

/** Events that are due: how many, since when the first is due, and the age of the oldest. */
type Due = {
  readonly due: number;
  readonly secondsDue: number | null;
  readonly seconds: number | null;
};

/** Counts due events and finds the oldest, using only the index. */
async function readDue(db: Executor, kind: RecordEventKind, most: number): Promise<Due> {
  const { rows } = await db.execute<Due>(sql`
    select
      (
        select count(*)::int
        from (
          select
          from ${journal}
          where kind = ${kind} and due_at <= now()
          order by due_at
          limit ${most}
        ) counted
      ) as due,
      extract(epoch from clock_timestamp() - min(due_at))::float8 as "secondsDue",
      extract(epoch from clock_timestamp() - min(recorded_at))::float8 as seconds
    from (
      select due_at, recorded_at
      from ${journal}
      where kind = ${kind} and due_at <= now()
      order by due_at
      limit ${Math.min(most, dueRead)}
    ) first`);
  return rows[0] ?? noneDue;
}

const noneDue: Due = { due: 0, secondsDue: null, seconds: null };

/**
 * The same while gates of owners are closed. Events behind them are not due, however many they are, so
 * each waiting owner is looked up: the first `most`, and up to `most` events of all of them.
 */
async function readDueBesideGates(db: Executor, kind: RecordEventKind, most: number): Promise<Due> {
  const { rows } = await db.execute<Due>(sql`
    with recursive waiting as (
      select ${`${kind}/`} as queue
      union all
      select (select e.queue from ${journal} e where e.queue > w.queue order by e.queue limit 1)
      from waiting w
      where w.queue like ${`${kind}/%`}
    ), due as (
      select e.due_at, e.recorded_at
      from (select queue from waiting limit ${most}) w
        cross join lateral (
          select due_at, recorded_at
          from ${journal}
          where queue = w.queue and due_at <= now()
          order by due_at
          limit ${most}
        ) e
      where w.queue like ${`${kind}/%`}
        and not exists (select from ${gates} where scope = w.queue)
      limit ${most}
    )
    select
      count(*)::int as due,
      extract(epoch from clock_timestamp() - min(due_at))::float8 as "secondsDue",
      extract(epoch from clock_timestamp() - min(recorded_at))::float8 as seconds
    from due`);
  return rows[0] ?? noneDue;
}

/** Events that are not due: how many need somebody who acts, how many wait, and the age of the oldest. */
type Later = {
  readonly parked: number;
  readonly waiting: number;
  readonly seconds: number | null;
};

const noneLater: Later = { parked: 0, waiting: 0, seconds: null };

/** Whether a failure needs somebody who acts. */
const isParked = (code: SQLWrapper): SQL => sql`coalesce(${isAmong(code, parkingCodes)}, false)`;

/** Counts events that are due later, except events behind closed gates. */
async function readLater(db: Executor, kind: RecordEventKind, most: number): Promise<Later> {
  const { rows } = await db.execute<Later>(sql`
    select
      least(count(*) filter (where is_parked), ${most})::int as parked,
      least(count(*) filter (where not is_parked), ${most})::int as waiting,
      extract(epoch from clock_timestamp() - min(recorded_at))::float8 as seconds
    from (
      select queue, recorded_at, ${isParked(sql`error_code`)} as is_parked
      from ${journal}
      where kind = ${kind} and due_at > now()
      order by due_at
      limit ${2 * most}
    ) next
    where not exists (select from ${gates} where scope = next.queue)`);
  return rows[0] ?? noneLater;
}

/** Counts events behind closed gates of owners. */
async function readBehindGates(db: Executor, kind: RecordEventKind, most: number): Promise<Later> {
  const { rows } = await db.execute<Later>(sql`
    select
      least(count(*) filter (where is_parked), ${most})::int as parked,
      least(count(*) filter (where not is_parked), ${most})::int as waiting,
      extract(epoch from clock_timestamp() - min(recorded_at))::float8 as seconds
    from (
      select e.recorded_at, ${isParked(sql`gate.code`)} as is_parked
      from ${gates} gate
        cross join lateral (
          select recorded_at from ${journal} where queue = gate.scope limit ${most}
        ) e
      where gate.scope like ${`${kind}/%`}
      limit ${most}
    ) behind`);
  return rows[0] ?? noneLater;
}

/**
 * Adds up pending events that failed or that are behind the closed gate of an owner, by failure, most
 * events first, at most `most` of each. Failed events are grouped by owner first, which Postgres can
 * hash; distinct owners would be sorted.
 */
export async function readWaiting(db: Executor, most: number): Promise<WaitingEvents[]> {
  const { rows } = await db.execute<Row<WaitingEvents>>(sql`
    with failed as (
      select
        codes.code,
        min(owned.error) as reason,
        sum(owned.events) as events,
        count(*) as owners,
        min(owned.since) as since,
        min(owned.due_at) as next_attempt_at
      from unnest(${array(Object.keys(failureTypes), 'text')}) as codes (code)
        cross join lateral (
          select
            min(error) as error,
            count(*) as events,
            min(recorded_at) as since,
            min(due_at) as due_at
          from (
            select error, queue, recorded_at, due_at
            from ${journal} e
            where error_code = codes.code
              and outcome = 'pending'
              -- Looked up one by one: a join might read all failed events to sort them.
              and not exists (select from ${gates} where scope = e.queue offset 0)
            order by due_at
            limit ${most}
          ) waiting
          group by substr(queue, strpos(queue, '/') + 1)
        ) owned
      group by codes.code
    ), behind_gates as (
      select
        codes.code,
        min(behind.message) as reason,
        count(*) as events,
        count(distinct behind.scope) as owners,
        min(behind.recorded_at) as since,
        min(behind.next_probe_at) as next_attempt_at
      from (select distinct code from ${gates} where not ${isShared}) codes
        cross join lateral (
          select gate.scope, gate.message, gate.next_probe_at, e.recorded_at
          from ${gates} gate
            cross join lateral (
              select recorded_at from ${journal} where queue = gate.scope limit ${most}
            ) e
          where gate.code = codes.code and not ${isShared}
          limit ${most}
        ) behind
      group by codes.code
    )
    select
      code,
      min(reason) as reason,
      least(sum(events), ${most})::int as events,
      sum(owners)::int as owners,
      min(since) as since,
      min(next_attempt_at) as "nextAttemptAt"
    from (select * from failed union all select * from behind_gates) waiting
    group by code
    order by events desc, code`);
  return rows;
}

/**
 * Reads whether reads still settle events, and why most pending events wait. It looks for settled
 * events among the latest, among events before the longest due event of each kind, where the sweep
 * works, and among events that had waited for more than a day.
 */
export async function readLateWork(
  db: Executor,
  [first]: readonly WaitingEvents[],
): Promise<LateWork> {
  const { rows } = await db.execute<{ seconds: number | null }>(sql`
    select extract(epoch from clock_timestamp() - max(settled_at))::float8 as seconds
    from (
      (
        select settled_at
        from ${journal}
        order by received_at desc
        limit ${batches.settledSearched}
      )
      union all
      (
        select aside_at
        from ${journal}
        where aside = 'late'
        order by aside_at desc
        limit 1
      )
      union all
      select earlier.settled_at
      from unnest(${array(recordEventKinds, 'text')}) as kinds (kind)
        cross join lateral (
          select recorded_at
          from ${journal}
          where kind = kinds.kind and due_at is not null
          order by due_at
          limit 1
        ) due
        cross join lateral (
          select settled_at
          from ${journal}
          where received_at <= due.recorded_at
          order by received_at desc
          limit ${batches.settledSearched}
        ) earlier
    ) settled`);
  return {
    settledSecondsAgo: rows[0]?.seconds ?? null,
    reason: first === undefined ? null : { code: first.code, events: first.events },
  };
}

/**
 * Reads parked work by failure, longest parked first: waiting events with a parking failure, the closed
 * gates of the service and of endpoints, and parts of backfills among the latest `most` failed parts.
 */
export async function readParked(
  db: Executor,
  waiting: readonly WaitingEvents[],
  most: number,
): Promise<ParkedWork[]> {
  const none = { events: 0, owners: 0, parts: 0 };
  const parked: ParkedWork[] = [
    ...waiting
      .filter((events) => parkingCodes.includes(events.code))
      .map((events) => ({ ...none, ...events })),
    ...(await sharedGates(db)).map((gate) => ({ ...none, ...gate })),
    ...(await parkedParts(db, most)).map((parts) => ({ ...none, ...parts, nextAttemptAt: null })),
  ];
  return [...Map.groupBy(parked, (work) => work.code).values()]
    .map((works) => works.reduce(together))
    .sort((a, b) => (a.since < b.since ? -1 : 1));
}

/** Adds up work that is parked for the same failure. */
const together = (a: ParkedWork, b: ParkedWork): ParkedWork => ({
  code: a.code,
  reason: a.reason < b.reason ? a.reason : b.reason,
  events: a.events + b.events,
  owners: a.owners + b.owners,
  parts: a.parts + b.parts,
  since: a.since < b.since ? a.since : b.since,
  nextAttemptAt:
    (a.nextAttemptAt ?? '') > (b.nextAttemptAt ?? '') ? a.nextAttemptAt : b.nextAttemptAt,
});

/** Reads the closed gates of the service and of endpoints. */
async function sharedGates(db: Executor) {
  type Gate = Pick<ParkedWork, 'code' | 'reason' | 'since' | 'nextAttemptAt'>;
  const { rows } = await db.execute<Gate>(sql`
    select code, message as reason, since, next_probe_at as "nextAttemptAt"
    from ${gates}
    where ${isShared}`);
  return rows;
}

/**
 * Counts parts of backfills that ended with a parking failure, among the latest `most` failed
 * parts, except parts that a later run has ended and parts of tombstoned companies.
 */
async function parkedParts(db: Executor, most: number) {
  type Parts = { code: FailureCode; reason: string; parts: number; since: string };
  const { rows } = await db.execute<Parts>(sql`
    select
      error_code as code,
      min(error) as reason,
      count(*)::int as parts,
      min(started_at) as since
    from (
      select *
      from ${runs}
      where resource is not null and state in ('failed', 'partial')
      order by finished_at desc
      limit ${most}
    ) failed
    where ${isAmong(sql`error_code`, parkingCodes)}
      and case
        when company_id is null then resource = 'companies' and not exists (
          select
          from ${runs} later
          where later.company_id is null
            and later.resource = failed.resource
            and later.finished_at > failed.finished_at
        )
        else ${isAmong(sql`resource`, companyResources)}
          and exists (
            select from ${companies} c where c.id = failed.company_id and c.deleted_at is null
          )
          and not exists (
            select
            from ${runs} later
            where later.company_id = failed.company_id
              and later.resource = failed.resource
              and later.finished_at > failed.finished_at
          )
      end
    group by error_code`);
  return rows;
}

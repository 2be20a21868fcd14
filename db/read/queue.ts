import {
  and,
  count,
  desc,
  eq,
  exists,
  gt,
  isNotNull,
  isNull,
  like,
  lte,
  min,
  not,
  type SQL,
  type SQLWrapper,
  sql,
  sum,
} from 'drizzle-orm';
import { alias, unionAll } from 'drizzle-orm/pg-core';
import { companyResources } from '../../contract/endpoints.ts';
import { type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import { type FailureCode, failureTypes, parkingCodes } from '../../contract/failures.ts';
import { batches } from '../../contract/limits.ts';
import type { LateWork, ParkedWork, PendingEvents, WaitingEvents } from '../../health/measured.ts';
import { livesCompany } from '../backfill/failed-parts.ts';
import { array, isAmong, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { isOpen, isShared } from '../queue/gates.ts';
import { isPending, ownerOf } from '../queue/queue.ts';
import { gates, journal } from '../schema/metersync.ts';
import { runs } from '../schema/reads.ts';
import { countUpTo, cut, secondsSince } from './bounds.ts';

/** Number of the longest due events among which the oldest is found. Most of them have the same age. */
const dueRead = 100;

/** A limit that the planner does not see: without statistics, it would rather sort all rows. */
const unseen = (limit: number): number => sql`(select ${limit}::bigint)` as unknown as number;

/** Pending events of a kind whose record can be read, and what is not due yet. */
interface Counted {
  readonly due: number;
  readonly secondsDue: number | null;
  readonly seconds: number | null;
}

/** Counts due events and finds the oldest, using only the index. */
async function readDue(db: Executor, kind: RecordEventKind, most: number): Promise<Counted> {
  const { dueAt, recordedAt } = journal;
  const isDue = and(eq(journal.kind, kind), lte(dueAt, sql`now()`));
  const due = await countUpTo(db, journal, most, isDue, dueAt);
  const first = db
    .select({ dueAt, recordedAt })
    .from(journal)
    .where(isDue)
    .orderBy(dueAt)
    .limit(unseen(Math.min(most, dueRead)))
    .as('first');
  const [oldest] = await db
    .select({
      secondsDue: secondsSince(min(first.dueAt)),
      seconds: secondsSince(min(first.recordedAt)),
    })
    .from(first);
  return { due, secondsDue: oldest?.secondsDue ?? null, seconds: oldest?.seconds ?? null };
}

/**
 * The same while gates of owners are closed. Events behind them are not due, however many they are, so
 * each waiting owner is looked up: the first `most`, and up to `most` events of all of them.
 */
async function readDueBesideGates(
  db: Executor,
  kind: RecordEventKind,
  most: number,
): Promise<Counted> {
  const { rows } = await db.execute<Counted & Record<string, unknown>>(sql`
    with recursive waiting as (
      select ${`${kind}/`} as queue
      union all
      select (
        select e.queue
        from ${journal} e
        where e.queue > w.queue
        order by e.queue
        limit 1
      )
      from waiting w
      where w.queue like ${`${kind}/%`}
    ), due as (
      select e.due_at, e.recorded_at
      from (select queue from waiting limit ${most}) w
        cross join lateral (
          select due_at, recorded_at
          from ${journal}
          where queue = w.queue
            and due_at <= now()
          order by due_at
          limit ${most}
        ) e
      where w.queue like ${`${kind}/%`}
        and ${isOpen(sql`w.queue`)}
      limit ${most}
    )
    select
      count(*)::int as due,
      ${secondsSince(sql`min(due_at)`)} as "secondsDue",
      ${secondsSince(sql`min(recorded_at)`)} as seconds
    from due`);
  return rows[0] ?? { due: 0, secondsDue: null, seconds: null };
}

/** Counts events behind closed gates of owners: parked ones, and others. */
async function countBehindGates(db: Executor, kind: RecordEventKind, most: number) {
  const ofGate = db
    .select({ recordedAt: journal.recordedAt })
    .from(journal)
    .where(eq(journal.queue, gates.scope))
    .limit(most)
    .as('of_gate');
  const behind = db
    .select({ recordedAt: ofGate.recordedAt, parked: isParked(gates.code).as('parked') })
    .from(gates)
    .crossJoinLateral(ofGate)
    .where(like(gates.scope, `${kind}/%`))
    .limit(most)
    .as('behind');
  const [counts] = await db
    .select({
      parked: cut(sql`count(*) filter (where ${behind.parked})`, most),
      waiting: cut(sql`count(*) filter (where not ${behind.parked})`, most),
      seconds: secondsSince(min(behind.recordedAt)),
    })
    .from(behind);
  return counts ?? { parked: 0, waiting: 0, seconds: null };
}

/** Whether a failure needs somebody who acts. */
const isParked = (code: SQLWrapper): SQL<boolean> =>
  sql<boolean>`coalesce(${isAmong(code, parkingCodes)}, false)`;

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
  const { dueAt, recordedAt, errorCode, queue } = journal;
  const due = closed ? await readDueBesideGates(db, kind, most) : await readDue(db, kind, most);
  const behind = closed
    ? await countBehindGates(db, kind, most)
    : { parked: 0, waiting: 0, seconds: null };
  const next = db
    .select({ queue, recordedAt, parked: isParked(errorCode).as('parked') })
    .from(journal)
    .where(and(eq(journal.kind, kind), gt(dueAt, sql`now()`)))
    .orderBy(dueAt)
    .limit(unseen(2 * most))
    .as('next');
  const countOf = (which: SQL) => cut(sql`count(*) filter (where ${which})`, most);
  const [later] = await db
    .select({
      waiting: countOf(sql`not ${next.parked}`),
      parked: countOf(sql`${next.parked}`),
      seconds: secondsSince(min(next.recordedAt)),
    })
    .from(next)
    .where(closed ? isOpen(next.queue) : undefined);
  const ages = [due.seconds, later?.seconds ?? null, behind.seconds].filter((age) => age !== null);
  return {
    due: due.due,
    waiting: Math.min((later?.waiting ?? 0) + behind.waiting, most),
    parked: Math.min((later?.parked ?? 0) + behind.parked, most),
    oldestDueSeconds: due.secondsDue,
    oldestSeconds: ages.length === 0 ? null : Math.max(...ages),
  };
}

/** Counts pending events by kind. */
export async function readPending(
  db: Executor,
  most: number,
): Promise<Readonly<Record<RecordEventKind, PendingEvents>>> {
  const pending: Partial<Record<RecordEventKind, PendingEvents>> = {};
  const closed = await db
    .selectDistinct({ kind: sql<string>`split_part(${gates.scope}, '/', 1)` })
    .from(gates);
  for (const kind of recordEventKinds)
    pending[kind] = await readKind(
      db,
      kind,
      most,
      closed.some((gate) => gate.kind === kind),
    );
  return pending as Record<RecordEventKind, PendingEvents>;
}

/**
 * Adds up pending events that failed or that are behind a closed gate, by failure, most events first, at
 * most `most` of each.
 */
export async function readWaiting(db: Executor, most: number): Promise<WaitingEvents[]> {
  const all = [...(await readFailed(db, most)), ...(await readBehindGates(db, most))];
  return [...Map.groupBy(all, ({ code }) => code).values()]
    .map((same) => same.reduce((a, b) => together(a, b, most)))
    .sort((a, b) => b.events - a.events || (a.code < b.code ? -1 : 1));
}

const together = (a: WaitingEvents, b: WaitingEvents, most: number): WaitingEvents => ({
  code: a.code,
  reason: a.reason < b.reason ? a.reason : b.reason,
  events: Math.min(a.events + b.events, most),
  owners: a.owners + b.owners,
  since: a.since < b.since ? a.since : b.since,
  nextAttemptAt:
    (a.nextAttemptAt ?? '') < (b.nextAttemptAt ?? '') ? a.nextAttemptAt : b.nextAttemptAt,
});

/** Adds up events behind the gates of owners, by failure. */
async function readBehindGates(db: Executor, most: number): Promise<WaitingEvents[]> {
  const { rows } = await db.execute<WaitingEvents & Record<string, unknown>>(sql`
    select
      codes.code,
      min(behind.message) as reason,
      count(*)::int as events,
      count(distinct behind.scope)::int as owners,
      min(behind.recorded_at)::text as since,
      min(behind.next_probe_at)::text as "nextAttemptAt"
    from (select distinct code from ${gates} where not ${isShared}) codes
      cross join lateral (
        select g.scope, g.message, g.next_probe_at, e.recorded_at
        from ${gates} g
          cross join lateral (
            select recorded_at
            from ${journal}
            where queue = g.scope
            limit ${most}
          ) e
        where g.code = codes.code
          and not ${isShared}
        limit ${most}
      ) behind
    group by codes.code`);
  return rows;
}

/**
 * Adds up events that failed themselves, by failure. It groups by owner first, which Postgres can hash;
 * distinct owners would be sorted.
 */
async function readFailed(db: Executor, most: number): Promise<WaitingEvents[]> {
  const { error, errorCode, queue, recordedAt, dueAt } = journal;
  const waiting = db
    .select({ error, queue, recordedAt, dueAt })
    .from(journal)
    .where(and(eq(errorCode, sql`codes.code`), isPending, isOpen(queue)))
    .orderBy(dueAt)
    .limit(most)
    .as('waiting');
  const owned = db
    .select({
      error: min(waiting.error).as('owned_error'),
      events: count().as('owned_events'),
      since: min(waiting.recordedAt).as('owned_since'),
      dueAt: min(waiting.dueAt).as('owned_due_at'),
    })
    .from(waiting)
    .groupBy(ownerOf(sql`waiting`))
    .as('owned');
  const counted = cut(sum(owned.events), most).as('counted');
  return await db
    .select({
      code: sql<FailureCode>`codes.code`,
      reason: sql<string>`min(${owned.error})`,
      events: counted,
      owners: count(),
      since: sql<string>`min(${owned.since})`,
      nextAttemptAt: min(owned.dueAt),
    })
    .from(sql`unnest(${array(Object.keys(failureTypes), 'text')}) as codes (code)`)
    .crossJoinLateral(owned)
    .groupBy(sql`codes.code`);
}

/**
 * Reads whether reads still settle events, and why most pending events wait. It looks for settled
 * events among the latest, among events before the longest due event of each kind, where catch-ups
 * work, and among events that had waited for more than a day.
 */
export async function readLateWork(
  db: Executor,
  [first]: readonly WaitingEvents[],
): Promise<LateWork> {
  const settledAt = sql<string | null>`settled_at`.as('settled_at');
  const lastOf = (before?: SQL) =>
    db
      .select({ settledAt })
      .from(journal)
      .where(before)
      .orderBy(desc(journal.receivedAt))
      .limit(literal(batches.settledSearched));
  const due = db
    .select({ since: journal.recordedAt })
    .from(journal)
    .where(and(eq(journal.kind, sql`kinds.kind`), isNotNull(journal.dueAt)))
    .orderBy(journal.dueAt)
    .limit(1)
    .as('due');
  const earlier = lastOf(lte(journal.receivedAt, due.since)).as('earlier');
  const settled = unionAll(
    lastOf(),
    db
      .select({ settledAt: sql<string | null>`aside_at`.as('settled_at') })
      .from(journal)
      .where(sql`${journal.aside} = 'late'`)
      .orderBy(desc(journal.asideAt))
      .limit(1),
    db
      .select({ settledAt: earlier.settledAt })
      .from(sql`unnest(${array(recordEventKinds, 'text')}) as kinds (kind)`)
      .crossJoinLateral(due)
      .crossJoinLateral(earlier),
  ).as('settled');
  const [last] = await db
    .select({
      seconds: sql<number | null>`${secondsSince(sql`max(${settled.settledAt})`)}`,
    })
    .from(settled);
  return {
    settledSecondsAgo: last?.seconds ?? null,
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
  const { code, message: reason, since, nextProbeAt } = gates;
  const none = { events: 0, owners: 0, parts: 0 };
  const service = await db
    .select({ code: sql<FailureCode>`${code}`, reason, since, nextAttemptAt: nextProbeAt })
    .from(gates)
    .where(isShared);
  const parts = await parkedParts(db, most);
  const refused: ParkedWork[] = [
    ...waiting
      .filter((events) => parkingCodes.includes(events.code))
      .map((events) => ({ ...none, ...events })),
    ...service.map((state) => ({ ...none, ...state })),
    ...parts.map((failed) => ({ ...none, ...failed, nextAttemptAt: null })),
  ];
  return [...Map.groupBy(refused, (work) => work.code).values()]
    .map((works) => works.reduce(parkedTogether))
    .sort((a, b) => (a.since < b.since ? -1 : 1));
}

/** Adds up work that is parked for the same failure. */
const parkedTogether = (a: ParkedWork, b: ParkedWork): ParkedWork => ({
  code: a.code,
  reason: a.reason < b.reason ? a.reason : b.reason,
  events: a.events + b.events,
  owners: a.owners + b.owners,
  parts: a.parts + b.parts,
  since: a.since < b.since ? a.since : b.since,
  nextAttemptAt:
    (a.nextAttemptAt ?? '') > (b.nextAttemptAt ?? '') ? a.nextAttemptAt : b.nextAttemptAt,
});

/**
 * Counts parts of backfills that ended with a parking failure, among the latest `most` failed
 * parts, except parts that a later run has ended and parts of tombstoned companies.
 */
async function parkedParts(db: Executor, most: number) {
  const failed = db
    .select()
    .from(runs)
    .where(and(isNotNull(runs.resource), sql`${runs.state} in ('failed', 'partial')`))
    .orderBy(desc(runs.finishedAt))
    .limit(most)
    .as('failed');
  const later = alias(runs, 'later');
  const readSince = (isOfPart: SQL) =>
    exists(
      db
        .select({ one: sql`1` })
        .from(later)
        .where(
          and(
            isOfPart,
            eq(later.resource, failed.resource),
            gt(later.finishedAt, failed.finishedAt),
          ),
        )
        .offset(literal(0)),
    );
  const ofList = and(eq(failed.resource, 'companies'), not(readSince(isNull(later.companyId))));
  const ofCompany = and(
    isAmong(failed.resource, companyResources),
    livesCompany(sql`${failed.companyId}`),
    not(readSince(eq(later.companyId, failed.companyId))),
  );
  return await db
    .select({
      code: sql<FailureCode>`${failed.errorCode}`,
      reason: sql<string>`min(${failed.error})`,
      parts: count(),
      since: sql<string>`min(${failed.startedAt})`,
    })
    .from(failed)
    .where(
      and(
        isAmong(failed.errorCode, parkingCodes),
        sql`case when ${isNull(failed.companyId)} then ${ofList} else ${ofCompany} end`,
      ),
    )
    .groupBy(failed.errorCode);
}

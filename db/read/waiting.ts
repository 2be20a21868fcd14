import { and, count, desc, eq, isNotNull, lte, min, type SQL, sql, sum } from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import { recordEventKinds } from '../../contract/event.ts';
import { type FailureCode, failureTypes } from '../../contract/failures.ts';
import { batches } from '../../contract/limits.ts';
import type { LateWork, WaitingEvents } from '../../health/measured.ts';
import { array, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { isOpen, isShared } from '../events/gates.ts';
import { isPending, ownerOf } from '../events/queue.ts';
import { gates, journal } from '../schema/metersync.ts';
import { cut, secondsSince } from './counted.ts';

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

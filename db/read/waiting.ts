import { count, desc, eq, lte, min, type SQL, sql, sum } from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import { recordEventKinds } from '../../contract/event.ts';
import { type FailureCode, failureTypes } from '../../contract/failures.ts';
import { batches } from '../../contract/limits.ts';
import type { LateWork, WaitingEvents } from '../../health/measured.ts';
import { array, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal, staleRecords } from '../schema/metersync.ts';
import { cut, secondsSince } from './counted.ts';

/**
 * Adds up pending events that failed, by failure, most events first, of at most `most` records
 * each. It groups by owner first, which Postgres can hash; distinct owners would be sorted.
 */
export async function readWaiting(db: Executor, most: number): Promise<WaitingEvents[]> {
  const { error, errorCode, events, owner, since, dueAt } = staleRecords;
  const waiting = db
    .select({ error, events, owner, since, dueAt })
    .from(staleRecords)
    .where(eq(errorCode, sql`codes.code`))
    .orderBy(dueAt)
    .limit(most)
    .as('waiting');
  const owned = db
    .select({
      error: min(waiting.error).as('owned_error'),
      events: sum(waiting.events).as('owned_events'),
      since: min(waiting.since).as('owned_since'),
      dueAt: min(waiting.dueAt).as('owned_due_at'),
    })
    .from(waiting)
    .groupBy(waiting.owner)
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
    .groupBy(sql`codes.code`)
    .orderBy(desc(counted), sql`codes.code`);
}

/**
 * Reads whether reads still settle events, and why most pending events wait. It looks for settled
 * events among the latest, among events before the longest due record of each kind, where catch-ups
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
    .select({ since: staleRecords.since })
    .from(staleRecords)
    .where(eq(staleRecords.kind, sql`kinds.kind`))
    .orderBy(staleRecords.dueAt)
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

import { count, desc, eq, lte, min, type SQL, type SQLWrapper, sql, sum } from 'drizzle-orm';
import { unionAll } from 'drizzle-orm/pg-core';
import { recordEventKinds } from '../../contract/event.ts';
import { type FailureCode, failureTypes } from '../../contract/failures.ts';
import { batches } from '../../contract/limits.ts';
import type { LateWork } from '../../health/measured.ts';
import { array, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal, staleRecords } from '../schema/metersync.ts';
import { cut, secondsSince } from './counted.ts';

/** Events, owners and parts of backfills that a failure holds up. */
export const heldUp = (
  of: Readonly<
    Record<
      'code' | 'reason' | 'events' | 'owners' | 'parts' | 'since' | 'nextAttemptAt',
      SQLWrapper
    >
  >,
) => ({
  code: sql<FailureCode>`${of.code}`.as('code'),
  reason: sql<string>`${of.reason}`.as('reason'),
  events: sql<number>`${of.events}`.as('events'),
  owners: sql<number>`${of.owners}`.as('owners'),
  parts: sql<number>`${of.parts}`.as('parts'),
  since: sql<string>`${of.since}`.as('since'),
  nextAttemptAt: sql<string | null>`${of.nextAttemptAt}`.as('next_attempt_at'),
});

/**
 * Adds up events that wait for failures, by failure, in at most so many records of each. They are added
 * up by owner first: that can be hashed, where a count of distinct owners sorts all.
 */
export function eventsThatFailed(db: Executor, codes: readonly string[], most: number) {
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
  return db
    .select(
      heldUp({
        code: sql`codes.code`,
        reason: min(owned.error),
        events: sum(owned.events),
        owners: count(),
        parts: sql`0`,
        since: min(owned.since),
        nextAttemptAt: min(owned.dueAt),
      }),
    )
    .from(sql`unnest(${array(codes, 'text')}) as codes (code)`)
    .crossJoinLateral(owned)
    .groupBy(sql`codes.code`);
}

/** Counts pending events that failed, by failure, most first. */
export async function readWaiting(db: Executor, most: number) {
  const failed = eventsThatFailed(db, Object.keys(failureTypes), most).as('failed');
  return await db
    .select({
      code: failed.code,
      /** One of its error messages. */
      reason: failed.reason,
      events: cut(failed.events, most),
      /** Companies, and for intervals meters, of the events. */
      owners: sql<number>`${failed.owners}::int`,
      /** When the first of them are tried again. */
      nextAttemptAt: failed.nextAttemptAt,
    })
    .from(failed)
    .orderBy(sql`3 desc`, failed.code);
}

/**
 * Reads whether reads still settle events, and why most of the pending ones wait. An event that was
 * settled recently is looked for among the events received last, those received before the longest due record
 * of each kind, as that is where catch-ups work, and those that had waited for over a day.
 */
export async function readLateWork(db: Executor, most: number): Promise<LateWork> {
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
  const [first] = await readWaiting(db, most);
  return {
    settledSecondsAgo: last?.seconds ?? null,
    reason: first === undefined ? null : { code: first.code, events: first.events },
  };
}

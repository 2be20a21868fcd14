import { and, eq, max, or, sql } from 'drizzle-orm';
import type { CatchUpKind } from '../../contract/names.ts';
import { catchUpOf, eventKind } from '../catch-up/stale.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { lock } from '../connection/locks.ts';
import { catchUps, journal, parked, staleRecords } from '../schema/metersync.ts';

/**
 * Keeps catch-ups from falling asleep while events are recorded. A catch-up that wants to sleep
 * waits for this lock, so neither misses the other.
 */
export async function holdAwake(tx: Executor): Promise<void> {
  await lock(tx, 'catchUps', 'beside');
}

/**
 * Returns the catch-ups to wake for a group that is recorded again and whose first wake-up may be lost: the
 * catch-ups of pending events, and those marked as awake, because the events for which they were marked may
 * be settled by now.
 */
export async function maybeMissedWakeups(
  tx: Executor,
  eventIds: readonly string[],
): Promise<CatchUpKind[]> {
  const found = await tx
    .selectDistinct({ kind: sql<CatchUpKind>`${catchUps.kind}` })
    .from(journal)
    .innerJoin(catchUps, eq(catchUps.kind, catchUpOf(sql`${journal.kind}`)))
    .where(and(isAmong(journal.id, eventIds), or(eq(journal.outcome, 'pending'), catchUps.awake)));
  return found.map(({ kind }) => kind);
}

/**
 * Puts a catch-up to sleep unless something is due. `asleep` is true when nothing waits at all.
 * `dueInMs` is when the next record is due: milliseconds from now, 0 when due, null when nothing
 * waits.
 */
export async function trySleep(
  tx: Executor,
  kind: CatchUpKind,
): Promise<{ asleep: boolean; dueInMs: number | null }> {
  await lock(tx, 'catchUps', 'alone');
  const resumesAt = tx.select({ at: max(parked.nextAttemptAt) }).from(parked);
  const dueAt = sql`greatest(${staleRecords.dueAt}, ${resumesAt})`;
  const [first] = await tx
    .select({
      inMs: sql<number>`(extract(epoch from ${dueAt} - clock_timestamp()) * 1000)::float8`,
    })
    .from(staleRecords)
    .where(eq(staleRecords.kind, eventKind[kind]))
    .orderBy(staleRecords.kind, staleRecords.dueAt)
    .limit(1);
  const due = first?.inMs ?? null;
  if (due !== null && due <= 0) return { asleep: false, dueInMs: 0 };
  // Marked asleep also while postponed records wait: new events must not wait as long.
  await tx.update(catchUps).set({ awake: false }).where(eq(catchUps.kind, kind));
  return { asleep: due === null, dueInMs: due === null ? null : Math.ceil(due) };
}

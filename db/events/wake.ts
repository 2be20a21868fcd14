import { and, eq, max, or, sql } from 'drizzle-orm';
import type { CatchUpKind } from '../../contract/names.ts';
import { catchUpOf, eventKind } from '../catch-up/stale.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { lock } from '../connection/locks.ts';
import { catchUps, journal, parked, staleRecords } from '../schema/metersync.ts';

/**
 * Keeps catch-ups from falling asleep while events are recorded. A catch-up that wants to sleep
 * waits for this lock. So either it sees the events, or whoever records them sees that it sleeps.
 */
export async function holdAwake(tx: Executor): Promise<void> {
  await lock(tx, 'catchUps', 'beside');
}

/**
 * Returns the catch-ups whose wake-up for a group recorded again may be lost: catch-ups of pending
 * events, and catch-ups marked as awake, whose events may be settled by now.
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
 * Puts a catch-up to sleep unless a record is due. `asleep`: no record waits at all. `dueInMs`:
 * time until the next record is due; 0 if it is due now, null if no record waits.
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
  // It is also marked as asleep while postponed records wait, so that new events wake it earlier.
  await tx.update(catchUps).set({ awake: false }).where(eq(catchUps.kind, kind));
  return { asleep: due === null, dueInMs: due === null ? null : Math.ceil(due) };
}

import { eq, sql } from 'drizzle-orm';
import type { CatchUpKind } from '../../contract/names.ts';
import { catchUpOf, eventKind } from '../catch-up/stale.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
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
  const result = await hot(tx, 'missedWakeups').execute<{ kind: CatchUpKind }>(sql`
    select distinct c.kind
    from ${journal} e
      join ${catchUps} c on c.kind = ${catchUpOf(sql`e.kind`)}
    where e.id = any(${array(eventIds, 'text')})
      and (e.outcome = 'pending' or c.awake)`);
  return result.rows.map((row) => row.kind);
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
  const waiting = await hot(tx, 'nextDue').execute<{ due_in_ms: number }>(sql`
    select (extract(epoch from at - clock_timestamp()) * 1000)::float8 as due_in_ms
    from ${staleRecords}
      cross join lateral (
        select greatest(due_at, (select max(next_attempt_at) from ${parked})) as at
      ) due
    where kind = ${eventKind[kind]}
    order by kind, due_at
    limit 1`);
  const due = waiting.rows[0]?.due_in_ms ?? null;
  if (due !== null && due <= 0) return { asleep: false, dueInMs: 0 };
  // Marked asleep also while postponed records wait: new events must not wait as long.
  await tx.update(catchUps).set({ awake: false }).where(eq(catchUps.kind, kind));
  return { asleep: due === null, dueInMs: due === null ? null : Math.ceil(due) };
}

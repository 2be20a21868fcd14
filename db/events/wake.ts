import { eq, sql } from 'drizzle-orm';
import type { CatchUpKind } from '../../contract/names.ts';
import { array } from '../arrays.ts';
import { eventKind } from '../catch-up/stale.ts';
import type { Executor } from '../connect.ts';
import { lock } from '../locks.ts';
import { catchUps, events, parked, staleRecords } from '../schema/metersync.ts';

/**
 * Whoever records events holds this, and a catch-up that wants to sleep waits for it: neither
 * misses the other.
 */
export async function holdAwake(tx: Executor): Promise<void> {
  await lock(tx, 'catchUps', 'beside');
}

/**
 * Catch-ups to wake for a group that is recorded again, whose first wake-up may have been lost:
 * those of events that still wait, and those that are marked awake, as what they were marked for
 * may wait no more.
 */
export async function maybeMissedWakeups(
  tx: Executor,
  eventIds: readonly string[],
): Promise<CatchUpKind[]> {
  const result = await tx.execute<{ kind: CatchUpKind }>(sql`
    select distinct c.kind
    from ${events} e
      join ${catchUps} c on c.kind = e.kind || 's'
    where e.id = any(${array(eventIds, 'text')})
      and (e.outcome = 'pending' or c.awake)`);
  return result.rows.map((row) => row.kind);
}

/**
 * Puts a catch-up to sleep unless something is due. Returns whether nothing waits at all, and
 * otherwise when something that waits becomes due (milliseconds from now; 0 when it is due already,
 * null when nothing waits).
 */
export async function trySleep(
  tx: Executor,
  kind: CatchUpKind,
): Promise<{ asleep: boolean; dueInMs: number | null }> {
  await lock(tx, 'catchUps', 'alone');
  const waiting = await tx.execute<{ due_in_ms: number }>(sql`
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
  // Also while it waits for what was postponed: what comes meanwhile must not wait as long.
  await tx.update(catchUps).set({ awake: false }).where(eq(catchUps.kind, kind));
  return { asleep: due === null, dueInMs: due === null ? null : Math.ceil(due) };
}

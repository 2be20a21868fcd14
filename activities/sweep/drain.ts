import { setTimeout as delay } from 'node:timers/promises';
import pMap from 'p-map';
import { eventKinds } from '../../contract/event.ts';
import { drainBounds } from '../../contract/limits.ts';
import { withoutStatement } from '../../db/connection/failures.ts';
import { anyPending, type PendingRecords, pendingAmong } from '../../db/queue/due.ts';
import { cancellation, within } from '../cancellation.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { closeIfRefused } from '../gates.ts';
import { asFailure } from '../map-failures.ts';
import type { OwnerReads } from './owner-reads.ts';

/**
 * Makes the function that reads the records of recorded events once, if they are few and few groups are read. It
 * never fails and nothing waits for a turn or for longer than the limit, because the sweep reads what is left; it
 * returns whether anything may be.
 */
export function createDrain(deps: ActivityDependencies, reads: OwnerReads) {
  // Recording does not wait for a connection, so neither does this.
  const { db } = deps.warehouse;
  let drains = 0;

  const readOwner = async ({
    kind: of,
    owner,
    records,
    changed,
    now,
    closed,
  }: PendingRecords): Promise<void> => {
    const kind = eventKinds[of].plural;
    // A second walk over the owner's listing would only make both slower.
    if (cancellation().aborted || reads.isWalking({ kind, owner })) return;
    try {
      const deleted = records.filter((id) => !changed.includes(id));
      await reads.read({ kind, owner }, { records: { readAt: now, due: records, deleted, closed } });
    } catch (error) {
      // The sweep reads the records again, and finds out why. Without a valid key, no request makes sense.
      const failure = asFailure(error);
      if (failure !== undefined) await closeIfRefused(deps, failure);
    }
  };

  const readAll = async (eventIds: readonly string[]): Promise<{ left: boolean }> => {
    const pending = await pendingAmong(db, eventIds);
    const count = pending.reduce((sum, { records }) => sum + records.length, 0);
    if (count > 0 && count <= drainBounds.records)
      await pMap(pending, readOwner, { concurrency: drainBounds.owners });
    return { left: await anyPending(db, eventIds) };
  };

  return async (eventIds: readonly string[]): Promise<{ left: boolean }> => {
    if (drains >= drainBounds.atOnce) return { left: true };
    drains += 1;
    const { limitMs } = drainBounds;
    const read = within(limitMs, () => readAll(eventIds))
      .catch((error: unknown) => {
        deps.log.warn({ err: withoutStatement(error) }, 'recorded events are left to the sweep');
        return { left: true };
      })
      .finally(() => {
        drains -= 1;
      });
    // Requests end at the limit. A statement that waits for a lock goes on, and keeps its place.
    return await Promise.race([read, delay(limitMs, { left: true }, { ref: false })]);
  };
}

import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Warehouse } from '../db/connect.ts';
import { beat, closeGate, type LimitState, leave } from '../db/service-limit.ts';
import type { SharedLimit } from '../service/throttle.ts';

/** How soon a worker learns that another was asked to slow down, came or went. */
const lookEveryMs = 1_000;
const leaveWithinMs = 2_000;

/** One limit of requests for all workers on a warehouse. */
export interface WarehouseLimit extends SharedLimit {
  /** Leaves the share to the others. */
  leave(): Promise<void>;
}

/**
 * The part of `limit` that is a worker's, of which every worker has at least one. They add up to the limit as long as
 * there are no more workers than it allows requests.
 */
export function shareOf(limit: number, { rank, workers }: Pick<LimitState, 'rank' | 'workers'>): number {
  return Math.max(1, Math.floor(limit / workers) + (rank < limit % workers ? 1 : 0));
}

/**
 * Joins the workers of a warehouse: looks once a second who lives and whether one of them was asked to slow down. The
 * warehouse is a connection of its own, so that no work delays that. While it is away the last share holds, or the
 * whole limit when there was none yet.
 */
export async function joinLimit(options: {
  readonly warehouse: Pick<Warehouse, 'db' | 'close'>;
  readonly limit: number;
  readonly log: Pick<Logger, 'debug' | 'warn'>;
}): Promise<WarehouseLimit> {
  const { warehouse, limit, log } = options;
  const { db } = warehouse;
  const workerId = randomUUID();
  let told: Parameters<SharedLimit['follow']>[0] | undefined;
  let share = limit;
  let closedUntil = 0;
  let opensAt = 0;
  let reachable = true;
  let joinsOthers = false;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  const tellClosed = (): void => {
    const ms = opensAt - performance.now();
    if (ms > 0) told?.closeFor(ms);
  };
  const look = async (): Promise<void> => {
    try {
      const now = await beat(db, workerId);
      const given = shareOf(limit, now);
      joinsOthers = now.workers > 1;
      if (given !== share) log.debug({ share: given, workers: now.workers }, 'share of the limit');
      share = given;
      told?.share(share);
      if (now.closedUntil > closedUntil) {
        closedUntil = now.closedUntil;
        opensAt = performance.now() + now.closedForMs;
        tellClosed();
      }
      reachable = true;
    } catch (error) {
      if (reachable) log.warn({ err: error, share }, 'the shared limit cannot be read: the last share holds');
      reachable = false;
    }
  };
  let looking = look();
  const lookAgain = (): void => {
    timer = setTimeout(() => {
      looking = look().then(() => (stopped ? undefined : lookAgain()));
    }, lookEveryMs);
  };
  await looking;
  // Until they have looked, the others take what is this one's share by now.
  if (joinsOthers) await wait(lookEveryMs);
  lookAgain();

  return {
    follow(listener) {
      told = listener;
      told.share(share);
      tellClosed();
    },
    closed(ms) {
      closeGate(db, ms).then(
        (until) => {
          closedUntil = Math.max(closedUntil, until);
        },
        (error: unknown) => log.debug({ err: error }, 'the other workers could not be told to slow down'),
      );
    },
    async leave() {
      stopped = true;
      clearTimeout(timer);
      const gone = looking.then(() => leave(db, workerId)).then(() => warehouse.close());
      // Whoever cannot say that it goes is missed soon.
      await Promise.race([gone.catch(() => {}), wait(leaveWithinMs, undefined, { ref: false })]);
    },
  };
}

import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Log } from '../contract/log.ts';
import { serverWaits } from '../contract/retry-policy.ts';
import type { Warehouse } from '../db/connect.ts';
import { beat, type Claimed, claim, closeGate, type LimitState, leave } from '../db/service-limit.ts';
import type { LimitedClient, SharedLimit } from '../service/throttle.ts';

const lookEveryMs = serverWaits.limitLookEveryMs;
/**
 * In checks: `valid` without an answer, and a worker stops its requests; `gone` without one, and the others
 * take its share, which has to be later; `turn` is how long a worker keeps its turn.
 */
const looks = { valid: 4, gone: 5, turn: 3 } as const;

/** One limit of requests for all workers on a warehouse. */
export interface WarehouseLimit extends SharedLimit {
  /** Gives the share back to the other workers. */
  leave(): Promise<void>;
}

/**
 * Works out a worker's share of `limit`. The shares add up to the limit; where there are more workers than
 * requests are allowed, they take turns.
 */
export function shareOf(
  limit: number,
  { rank, workers, turn }: Pick<LimitState, 'rank' | 'workers'> & { readonly turn: number },
): number {
  if (workers <= limit) return Math.floor(limit / workers) + (rank < limit % workers ? 1 : 0);
  const first = (turn * limit) % workers;
  return (rank - first + workers) % workers < limit ? 1 : 0;
}

/**
 * Joins the workers of a warehouse. It checks once a second which of them live, and whether one was asked to
 * slow down. A share is taken only once the others have given it up, requests in flight included. It needs a
 * connection of its own, so that no work delays the checks. After some seconds without the warehouse no
 * requests are sent: what the others do is then unknown.
 */
export async function joinLimit(options: {
  readonly warehouse: Pick<Warehouse, 'db' | 'close'>;
  readonly limit: number;
  readonly log: Pick<Log, 'debug' | 'warn'>;
  readonly everyMs?: number;
}): Promise<WarehouseLimit> {
  const { warehouse, limit, log, everyMs = lookEveryMs } = options;
  const { db } = warehouse;
  const goneAfterMs = looks.gone * everyMs;
  const workerId = randomUUID();
  let client: LimitedClient | undefined;
  let claimed: Claimed = { granted: 0, held: 0 };
  let workers = 1;
  let closedUntil = 0;
  let opensAt = 0;
  let reachable = true;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let lapse: NodeJS.Timeout | undefined;

  const give = (share: Claimed): void => {
    claimed = share;
    client?.share(share.granted);
  };
  const validFrom = (since: number): void => {
    clearTimeout(lapse);
    const leftMs = since + looks.valid * everyMs - performance.now();
    lapse = setTimeout(() => give({ ...claimed, granted: 0 }), Math.max(0, leftMs)).unref();
  };
  const passClosed = (): void => {
    const ms = opensAt - performance.now();
    if (ms > 0) client?.closeFor(ms);
  };
  const takePart = async (now: LimitState): Promise<void> => {
    if (now.workers > limit && workers <= limit)
      log.warn({ workers: now.workers, limit }, 'more workers than SERVICE_MAX_CONCURRENCY: they take turns');
    workers = now.workers;
    const wanted = shareOf(limit, { ...now, turn: Math.floor(now.now / (looks.turn * everyMs)) });
    if (wanted === claimed.granted && wanted === claimed.held) return;
    // Requests stop before the share is given back, so that those in flight can only become fewer.
    if (wanted < claimed.granted) give({ ...claimed, granted: wanted });
    give(await claim(db, workerId, { wanted, limit, inFlight: client?.inFlight() ?? 0, goneAfterMs }));
    log.debug({ share: claimed.granted, workers }, 'share of the limit');
  };
  const look = async (): Promise<void> => {
    const since = performance.now();
    try {
      const now = await beat(db, workerId, goneAfterMs);
      await takePart(now);
      validFrom(since);
      if (now.closedUntil > closedUntil) {
        closedUntil = now.closedUntil;
        opensAt = performance.now() + now.closedForMs;
        passClosed();
      }
      reachable = true;
    } catch (error) {
      if (reachable) log.warn({ err: error }, 'the shared limit cannot be read: no requests until it can');
      reachable = false;
    }
  };
  let looking = look();
  const lookAgain = (): void => {
    timer = setTimeout(() => {
      looking = look().then(() => (stopped ? undefined : lookAgain()));
    }, everyMs);
  };
  await looking;
  lookAgain();

  return {
    follow(limited) {
      client = limited;
      client.share(claimed.granted);
      passClosed();
    },
    closed(ms) {
      closeGate(db, ms).then(
        (until) => {
          closedUntil = Math.max(closedUntil, until);
        },
        (error: unknown) => log.debug({ err: error }, 'the other workers could not be slowed down'),
      );
    },
    async leave() {
      stopped = true;
      clearTimeout(timer);
      const gone = looking.then(() => leave(db, workerId)).then(() => warehouse.close());
      // If it cannot say goodbye, the others soon find it gone.
      await Promise.race([gone.catch(() => {}), wait(serverWaits.limitLeaveMs, undefined, { ref: false })]);
      clearTimeout(lapse);
    },
  };
}

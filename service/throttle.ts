import PQueue from 'p-queue';
import type { Clock, Log } from './clock.ts';

/** What happens now goes before a backfill. */
export type Lane = 'live' | 'backfill';
const priorities: Readonly<Record<Lane, number>> = { live: 1, backfill: 0 };

/**
 * When the gate opens, a backfill lets live requests pass and its own spread out: the milliseconds within which
 * it comes back.
 */
const backfillSpreadMs = 250;

/** Says that the gate was closed when the turn came: nothing was sent. */
export const gateClosed = Symbol('gate closed');

/**
 * Decides which request of a client goes when. At most `concurrency` at once, live ones first; and one gate for
 * all: when the service asks one request to slow down, nobody sends until the moment it named.
 */
export interface Throttle {
  /**
   * Waits for a turn and sends, unless the gate is closed by then. Rejects with the signal's reason as soon as
   * it aborts, waiting or sending.
   */
  turn<T>(
    lane: Lane,
    signal: AbortSignal | undefined,
    send: () => Promise<T>,
  ): Promise<T | typeof gateClosed>;
  /** Milliseconds until the gate opens; 0 when it is open. */
  closedForMs(): number;
  /** Milliseconds after the gate opened at which a request of this lane comes back. */
  spreadMs(lane: Lane): number;
  closeFor(ms: number): void;
  /** A request was answered well: after a slow-down the pace recovers, one step for each full round. */
  succeeded(): void;
}

export function createThrottle(options: {
  readonly concurrency: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}): Throttle {
  const { concurrency, clock, random, log } = options;
  const queue = new PQueue({ concurrency });
  let closedUntil = Number.NEGATIVE_INFINITY;
  let successes = 0;

  return {
    async turn(lane, signal, send) {
      return await queue.add(
        async () => (clock.now() < closedUntil ? gateClosed : await send()),
        // Left out rather than undefined: p-queue would take an undefined signal too, but says so nowhere.
        signal === undefined ? { priority: priorities[lane] } : { priority: priorities[lane], signal },
      );
    },
    closedForMs: () => Math.max(closedUntil - clock.now(), 0),
    spreadMs: (lane) => (lane === 'live' ? 0 : random() * backfillSpreadMs),
    closeFor(ms) {
      const now = clock.now();
      // Requests in flight are refused together: the first of them halves the pace, the rest find it halved.
      if (now >= closedUntil) {
        queue.concurrency = Math.max(1, Math.floor(queue.concurrency / 2));
        log.warn({ waitMs: Math.round(ms), concurrency: queue.concurrency }, 'the service asks to slow down');
      }
      closedUntil = Math.max(closedUntil, now + ms);
    },
    succeeded() {
      if (queue.concurrency >= concurrency) return;
      successes += 1;
      if (successes < queue.concurrency) return;
      successes = 0;
      queue.concurrency += 1;
    },
  };
}

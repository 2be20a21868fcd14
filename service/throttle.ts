import PQueue from 'p-queue';
import type { Log } from '../contract/log.ts';
import { requestPolicy } from '../contract/retry-policy.ts';
import type { Clock } from './clock.ts';

/** Live requests go before those of a backfill. */
export type Lane = 'live' | 'backfill';
const priorities: Readonly<Record<Lane, number>> = { live: 1, backfill: 0 };

/** Result of a turn that found the gate closed: nothing was sent. */
export const gateClosed = Symbol('gate closed');

/**
 * Decides when each request of a client is sent. At most `concurrency` are in flight, live ones first. One
 * gate stops all: when the service asks one request to slow down, none is sent until that time is over.
 * Clients of other processes take part through a shared limit.
 */
export interface Throttle {
  /**
   * Waits for a turn and sends, unless the gate is closed by then. Rejects with the signal's reason as soon
   * as it aborts, while waiting or sending.
   */
  turn<T>(
    lane: Lane,
    signal: AbortSignal | undefined,
    send: () => Promise<T>,
  ): Promise<T | typeof gateClosed>;
  /** Milliseconds until the gate opens; 0 when it is open. */
  closedForMs(): number;
  /** Milliseconds that a request of this lane waits after the gate opened. */
  spreadMs(lane: Lane): number;
  closeFor(ms: number): void;
  /** Returns how many requests may be in flight, and how long the gate was closed. */
  pace(): Pace;
  /** Notes a success: after a slow-down the pace recovers, one step for each full round. */
  succeeded(): void;
}

/** How fast a client may ask. */
export interface Pace {
  /** This client's share of the limit. */
  readonly share: number;
  /** Requests that may be in flight now: less than the share after a slow-down. */
  readonly concurrency: number;
  /** Milliseconds that the gate was closed since the client was made, the rest of a closing included. */
  readonly closedMs: number;
}

/**
 * Connects the clients of several processes that share one limit. Calls return at once and never throw:
 * sharing must not delay a request.
 */
export interface SharedLimit {
  /** Reports to the others that the service asked all to wait. */
  closed(ms: number): void;
  /** From now on passes the reports of others, and its share of the limit, to this client. */
  follow(client: LimitedClient): void;
}

/** A client, as a shared limit sees it. */
export interface LimitedClient {
  closeFor(ms: number): void;
  /** Sets how many requests it may have in flight. At 0 requests wait; those in flight go on. */
  share(concurrency: number): void;
  inFlight(): number;
}

export function createThrottle(options: {
  /** Requests in flight, until the shared limit sets another number. */
  readonly concurrency: number;
  /** Requests a second, evenly spaced, in proportion to the share of the limit; unbounded when absent. */
  readonly perSecond?: number | undefined;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Pick<Log, 'debug' | 'warn'>;
  readonly shared?: SharedLimit | undefined;
}): Throttle {
  const { concurrency, perSecond, clock, random, log, shared } = options;
  const queue = new PQueue({ concurrency });
  let closedUntil = Number.NEGATIVE_INFINITY;
  let nextAt = Number.NEGATIVE_INFINITY;
  let closedMs = 0;
  let successes = 0;
  let share = concurrency;
  /** Requests in flight that the service accepts, since it asked to slow down. */
  let bearable = Number.POSITIVE_INFINITY;

  const setPace = (): void => {
    if (share === 0) {
      queue.pause();
      return;
    }
    queue.concurrency = Math.min(share, bearable);
    queue.start();
  };
  const close = (ms: number): void => {
    const now = clock.now();
    // Requests in flight are refused together: the first of them halves the pace, the rest find it halved.
    if (now >= closedUntil) {
      bearable = Math.max(1, Math.floor(queue.concurrency / 2));
      setPace();
      log.warn({ waitMs: Math.round(ms), concurrency: queue.concurrency }, 'the service asks to slow down');
    }
    const until = Math.max(closedUntil, now + ms);
    closedMs += until - Math.max(closedUntil, now);
    closedUntil = until;
  };
  shared?.follow({
    closeFor: close,
    share(given) {
      // A client at full pace stays at full pace; a recovering one goes on from its pace.
      if (share > 0 && bearable >= share) bearable = Number.POSITIVE_INFINITY;
      share = given;
      setPace();
    },
    inFlight: () => queue.pending,
  });

  const isClosed = (): boolean => clock.now() < closedUntil;
  const pace = async (signal: AbortSignal | undefined): Promise<void> => {
    if (perSecond === undefined) return;
    const now = clock.now();
    const at = Math.max(now, nextAt);
    nextAt = at + (1_000 * concurrency) / (perSecond * Math.max(1, share));
    if (at > now) await clock.sleep(at - now, signal);
  };

  return {
    async turn(lane, signal, send) {
      return await queue.add(
        async () => {
          if (isClosed()) return gateClosed;
          await pace(signal);
          return isClosed() ? gateClosed : await send();
        },
        // Left out rather than undefined: p-queue would take an undefined signal too, but says so nowhere.
        signal === undefined ? { priority: priorities[lane] } : { priority: priorities[lane], signal },
      );
    },
    closedForMs: () => Math.max(closedUntil - clock.now(), 0),
    spreadMs: (lane) => (lane === 'live' ? 0 : random() * requestPolicy.backfillSpreadMs),
    closeFor(ms) {
      close(ms);
      shared?.closed(ms);
    },
    pace: () => ({ share, concurrency: share === 0 ? 0 : queue.concurrency, closedMs }),
    succeeded() {
      if (bearable >= share) return;
      successes += 1;
      if (successes < queue.concurrency) return;
      successes = 0;
      bearable += 1;
      setPace();
    },
  };
}

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
 * all: when the service asks one request to slow down, nobody sends until the moment it named. Clients of other
 * processes take part through a shared limit.
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

/**
 * Where the clients of several processes, which have one limit together, tell one another. Calls return at once and
 * never throw: what is shared must not hold up a request.
 */
export interface SharedLimit {
  /** Tells the others that the service asked everybody to wait. */
  closed(ms: number): void;
  /** From now on says what others told, and how many requests at once are this client's share of the limit. */
  follow(client: LimitedClient): void;
}

/** What a shared limit tells a client, and asks it. */
export interface LimitedClient {
  closeFor(ms: number): void;
  /** None at 0: requests wait for their turn, those in flight go on. */
  share(concurrency: number): void;
  inFlight(): number;
}

export function createThrottle(options: {
  /** Requests at once, until the shared limit says another number. */
  readonly concurrency: number;
  /** Requests a second, sent evenly; of a share of the limit that part of them. As many as are answered when absent. */
  readonly perSecond?: number | undefined;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly shared?: SharedLimit | undefined;
}): Throttle {
  const { concurrency, perSecond, clock, random, log, shared } = options;
  const queue = new PQueue({ concurrency });
  let closedUntil = Number.NEGATIVE_INFINITY;
  let nextAt = Number.NEGATIVE_INFINITY;
  let successes = 0;
  let share = concurrency;
  /** Requests at once that the service bears, since it asked to slow down. */
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
    closedUntil = Math.max(closedUntil, now + ms);
  };
  shared?.follow({
    closeFor: close,
    share(given) {
      // Whoever is at full pace stays so; a pace that is still recovering goes on from where it is.
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
    spreadMs: (lane) => (lane === 'live' ? 0 : random() * backfillSpreadMs),
    closeFor(ms) {
      close(ms);
      shared?.closed(ms);
    },
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

import PQueue, { PriorityQueue, type Queue, type QueueAddOptions } from 'p-queue';
import type { Log } from '../contract/log.ts';
import { requestPolicy } from '../contract/retry-policy.ts';

/** Time as a dependency: real in a process, virtual in tests. */
export interface WallClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Rejects at once when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/**
 * Who sends a request, the most urgent first: the read right after an event was recorded, which has only a few
 * seconds; other reads of records that events named, and what people wait for; a backfill.
 */
export type Lane = 'drain' | 'live' | 'backfill';
const priorities: Readonly<Record<Lane, number>> = { drain: 2, live: 1, backfill: 0 };

/**
 * The lane that has the first right to each of five turns; a turn that it does not need goes to the most urgent
 * request. So no lane stands still: the sweep finds out that the service is away while drains end without an answer,
 * and the listings of a backfill show what thousands of events wait for.
 */
const turns: readonly Lane[] = ['drain', 'live', 'drain', 'live', 'backfill'];

type RunFunction = () => Promise<unknown>;

/** Requests that wait for their turn. */
class Waiting implements Queue<RunFunction, QueueAddOptions> {
  readonly #lanes = Object.values(priorities).map(() => new PriorityQueue());
  #turn = 0;

  get size(): number {
    return this.#lanes.reduce((sum, { size }) => sum + size, 0);
  }

  enqueue(run: RunFunction, options?: Partial<QueueAddOptions>): void {
    this.#of(options?.priority).enqueue(run, options);
  }

  dequeue(): RunFunction | undefined {
    const first = turns[this.#turn % turns.length] ?? 'drain';
    this.#turn += 1;
    const lane = [this.#of(priorities[first]), ...this.#lanes.toReversed()].find(({ size }) => size > 0);
    return lane?.dequeue();
  }

  remove(id: string): void {
    for (const lane of this.#lanes) lane.remove(id);
  }

  filter(options: Partial<QueueAddOptions>): RunFunction[] {
    return this.#of(options.priority).filter(options);
  }

  setPriority(id: string, priority: number): void {
    this.#of(priority).setPriority(id, priority);
  }

  #of(priority: number = priorities.backfill): PriorityQueue {
    return this.#lanes[priority] as PriorityQueue;
  }
}

/** Result of a turn that found the gate closed: nothing was sent. */
export const gateClosed = Symbol('gate closed');

/**
 * Decides when each request of a client is sent: at most `concurrency` at once, urgent requests first. One gate
 * stops all of them while the service asks one request to slow down.
 */
export interface Throttle {
  /** Waits for a turn and sends, unless the gate is closed by then. Rejects with the signal's reason. */
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
  /** Notes a success: after a slow-down the pace recovers by one step for each full round. */
  succeeded(): void;
}

/** How fast a client may send requests. */
export interface Pace {
  /** Requests that may be in flight now: fewer than the limit after a slow-down. */
  readonly concurrency: number;
  /** Milliseconds for which the gate was closed so far, including the remaining time if it is closed now. */
  readonly closedMs: number;
}

export function createThrottle(options: {
  readonly concurrency: number;
  readonly clock: WallClock;
  readonly random: () => number;
  readonly log: Pick<Log, 'debug' | 'warn'>;
}): Throttle {
  const { concurrency, clock, random, log } = options;
  const queue = new PQueue({ concurrency, queueClass: Waiting });
  let closedUntil = Number.NEGATIVE_INFINITY;
  let closedMs = 0;
  let successes = 0;

  const isClosed = (): boolean => clock.now() < closedUntil;

  return {
    async turn(lane, signal, send) {
      return await queue.add(
        async () => (isClosed() ? gateClosed : await send()),
        // `signal` is left out if it is undefined: p-queue accepts undefined, but does not document it.
        signal === undefined ? { priority: priorities[lane] } : { priority: priorities[lane], signal },
      );
    },
    closedForMs: () => Math.max(closedUntil - clock.now(), 0),
    spreadMs: (lane) => (lane === 'backfill' ? random() * requestPolicy.backfillSpreadMs : 0),
    closeFor(ms) {
      const now = clock.now();
      // Requests in flight are refused together. Only the first of these refusals halves the pace.
      if (now >= closedUntil) {
        queue.concurrency = Math.max(1, Math.floor(queue.concurrency / 2));
        log.warn({ waitMs: Math.round(ms), concurrency: queue.concurrency }, 'the service asks to slow down');
      }
      const until = Math.max(closedUntil, now + ms);
      closedMs += until - Math.max(closedUntil, now);
      closedUntil = until;
    },
    pace: () => ({ concurrency: queue.concurrency, closedMs }),
    succeeded() {
      if (queue.concurrency >= concurrency) return;
      successes += 1;
      if (successes < queue.concurrency) return;
      successes = 0;
      queue.concurrency += 1;
    },
  };
}

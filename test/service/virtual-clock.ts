import type { WallClock } from '../../service/throttle.ts';

interface Sleeper {
  readonly due: number;
  readonly wake: () => void;
}

/**
 * Time that moves only when the test moves it, or by itself over every sleep shorter than `skipBelowMs`: the
 * waits between attempts are skipped in order, while the deadline of a request stays where it is.
 */
export class VirtualClock implements WallClock {
  /** Sleeps that were skipped, in milliseconds, in the order in which they began. */
  readonly slept: number[] = [];
  #now: number;
  readonly #skipBelowMs: number;
  readonly #sleepers = new Set<Sleeper>();

  constructor({ now = Date.parse('2025-01-01T00:00:00Z'), skipBelowMs = 0 } = {}) {
    this.#now = now;
    this.#skipBelowMs = skipBelowMs;
  }

  now(): number {
    return this.#now;
  }

  get sleeping(): number {
    return this.#sleepers.size;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const due = this.#now + ms;
      const abort = (): void => {
        this.#sleepers.delete(sleeper);
        reject(signal?.reason);
      };
      const sleeper: Sleeper = {
        due,
        wake: () => {
          signal?.removeEventListener('abort', abort);
          this.#sleepers.delete(sleeper);
          resolve();
        },
      };
      signal?.addEventListener('abort', abort, { once: true });
      this.#sleepers.add(sleeper);
      if (ms >= this.#skipBelowMs) return;
      this.slept.push(ms);
      // Other sleepers start before this runs, so that the sleeper that is due first moves the time.
      setImmediate(() => this.#skipTo(due));
    });
  }

  /** Moves the time on, and wakes the due sleepers, the earliest first. */
  advance(ms: number): void {
    this.#skipTo(this.#now + ms);
  }

  #skipTo(moment: number): void {
    this.#now = Math.max(this.#now, moment);
    const due = [...this.#sleepers].filter((sleeper) => sleeper.due <= this.#now);
    for (const sleeper of due.sort((a, b) => a.due - b.due)) sleeper.wake();
  }
}

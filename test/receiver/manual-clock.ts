import type { MonotonicClock } from '../../receiver/clock.ts';

/** A clock that stands still until the test moves it. */
export class ManualClock implements MonotonicClock {
  #now = 0;
  #timers: { at: number; callback: () => void }[] = [];
  #soon: (() => void)[] = [];

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  soon(callback: () => void): void {
    this.#soon.push(callback);
  }

  /** Ends the turn: runs the callbacks of `soon` and their immediate reactions. */
  async turn(): Promise<void> {
    for (const callback of this.#soon.splice(0)) callback();
    await settled();
    if (this.#soon.length > 0) await this.turn();
  }

  /** Moves time on, and runs every timer that comes due on the way. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.turn();
    for (;;) {
      const next = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await this.turn();
    }
    this.#now = end;
  }
}

/** Lets all settled promises run their reactions. */
export async function settled(): Promise<void> {
  for (let round = 0; round < 20; round += 1) await Promise.resolve();
}

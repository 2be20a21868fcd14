import type { MonotonicClock } from './clock.ts';
import { httpLimits } from './http-limits.ts';

/** A body that is being read. */
export interface Incoming {
  /** Stops reading until `resume`; what Node reads ahead meanwhile comes with the next bytes. */
  pause(): void;
  resume(): void;
  /** Ends the body to free memory; it has to `release` what it holds. */
  crowdOut(): void;
}

/** Bounds of a budget; http-limits.ts has their values and reasons. */
export interface BudgetLimits {
  readonly bytesMax: number;
  readonly bytesPerSecond: number;
  readonly bytesAtOnce: number;
}

export interface BodyBudget {
  /**
   * Accounts for bytes that were read of a body. It may pause this body, or crowd out this or another one.
   */
  take(body: Incoming, bytes: number): void;
  /** Gives back all that a body holds, once it is complete or ended. */
  release(body: Incoming): void;
  /** Bytes that all bodies hold. */
  readonly held: number;
}

interface Account {
  held: number;
  waiting: boolean;
}

/** Bytes that a paused body may hold uncounted: Node reads ahead until it has a chunk of this size. */
export const readAheadBytes = 64 * 1024;

/**
 * Limits the memory that unverified bodies share, and the pace at which they may fill it.
 *
 * Bodies are read in the order in which they began: beyond the pace they wait, and the body whose first byte
 * is oldest continues first. Beyond the memory limit the oldest body is ended, because it had its turn before
 * all others and is still not complete. Other measures of slowness can be cheated: by a burst without its
 * last bytes, by a byte now and then, or by many small bodies.
 *
 * So from its turn on, a body is safe for `bytesMax / bytesPerSecond`, whatever others send. Its turn comes
 * when the bodies before it have been read.
 */
export function createBodyBudget(
  { bytesMax, bytesPerSecond, bytesAtOnce }: BudgetLimits,
  clock: MonotonicClock,
): BodyBudget {
  /** In the order of their first bytes. */
  const accounts = new Map<Incoming, Account>();
  let held = 0;
  let allowed = bytesAtOnce;
  let allowedAt = clock.now();
  let turnIsDue = false;

  const charge = (account: Account, bytes: number) => {
    account.held += bytes;
    held += bytes;
  };
  const refill = () => {
    const now = clock.now();
    allowed = Math.min(bytesAtOnce, allowed + ((now - allowedAt) * bytesPerSecond) / 1_000);
    allowedAt = now;
  };
  const nextTurn = () => {
    if (turnIsDue) return;
    turnIsDue = true;
    clock.after(httpLimits.bodyTurnMs, () => {
      turnIsDue = false;
      takeTurn();
    });
  };
  const takeTurn = () => {
    refill();
    let granted = 0;
    for (const [body, account] of accounts) {
      if (!account.waiting) continue;
      if (granted >= allowed) return nextTurn();
      granted += readAheadBytes;
      account.waiting = false;
      charge(account, -readAheadBytes);
      body.resume();
    }
  };

  return {
    get held() {
      return held;
    },
    take(body, bytes) {
      const account = accounts.get(body) ?? { held: 0, waiting: false };
      accounts.set(body, account);
      charge(account, bytes);
      refill();
      allowed -= bytes;
      if (allowed < 0 && !account.waiting) {
        account.waiting = true;
        charge(account, readAheadBytes);
        body.pause();
        nextTurn();
      }
      while (held > bytesMax) {
        const [first] = accounts.keys();
        first?.crowdOut();
      }
    },
    release(body) {
      held -= accounts.get(body)?.held ?? 0;
      accounts.delete(body);
    },
  };
}

import type { Clock } from './clock.ts';

/** A body that is being read. */
export interface Incoming {
  /** Stops reading it, or goes on; what was read meanwhile comes with the next bytes. */
  pause(): void;
  resume(): void;
  /** Ends it for want of room; it has to `release` what it holds. */
  crowdOut(): void;
}

/** Bounds of a budget; http-limits.ts has the values and the reasons. */
export interface BudgetLimits {
  readonly bytesMax: number;
  readonly bytesPerSecond: number;
  readonly bytesAtOnce: number;
}

export interface BodyBudget {
  /** Accounts for bytes of a body that were read. It may pause the body, or crowd out this one or others. */
  take(body: Incoming, bytes: number): void;
  /** Gives back all that a body holds: it is complete, or over. */
  release(body: Incoming): void;
  /** Bytes that all bodies hold. */
  readonly held: number;
}

interface Account {
  held: number;
  waiting: boolean;
}

/** What a paused body may hold unseen: Node reads on until it has a chunk of this size. */
export const readAheadBytes = 64 * 1024;
/** How often bodies that wait are looked at. */
const turnMs = 5;

/**
 * Memory that bodies share before anything of them is verified, and the pace at which they may fill it.
 *
 * First come, first read: past the pace bodies wait, and those go on first whose first byte is the longest ago. Past
 * the bound the slowest is ended, which is that same first one: it had its turn before all others and is still not
 * done. No other measure of slowness is as hard to cheat: all of a body but its last bytes, sent in a burst, makes the
 * best rate; a byte now and then is progress; many bodies of a few bytes hold less each than one delivery.
 *
 * So a body is safe for `bytesMax / bytesPerSecond` from its turn on, whatever others send, and its turn comes when
 * those before it are read.
 */
export function createBodyBudget(
  { bytesMax, bytesPerSecond, bytesAtOnce }: BudgetLimits,
  clock: Clock,
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
    clock.after(turnMs, () => {
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

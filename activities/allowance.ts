import { batches } from '../contract/limits.ts';
import { attemptPolicy } from '../contract/retry-policy.ts';

/** Bounds the records and the time of a company that shares an activity with others. */
export interface Allowance {
  /** @throws TooMuch when the listing has too many records, or the time is spent. */
  check(total: number | null): void;
  /** Whether the time is spent. */
  isSpent(): boolean;
}

/** The company is too large to share an activity with others. */
export class TooMuch extends Error {}

/** Starts the time of a company; `now` is in milliseconds. */
export function allowanceFrom(now: () => number): Allowance {
  const until = now() + attemptPolicy.companyTogetherMaxMs;
  const isSpent = () => now() > until;
  return {
    isSpent,
    check(total) {
      if ((total ?? 0) > batches.recordsOfSmallCompany || isSpent())
        throw new TooMuch('the company is large');
    },
  };
}

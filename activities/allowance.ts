/** A company with more records in one listing is large: 20 pages. */
const recordsMax = 2_000;

/** A company that takes longer is large, too. Well within `elsewhereSeconds` of db/backfill/runs.ts. */
const companyMsMax = 20_000;

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
  const until = now() + companyMsMax;
  const isSpent = () => now() > until;
  return {
    isSpent,
    check(total) {
      if ((total ?? 0) > recordsMax || isSpent()) throw new TooMuch('the company is large');
    },
  };
}

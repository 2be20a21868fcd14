/** Records of one listing above which a company is large: 20 pages. */
const recordsMax = 2_000;

/** How long a company may take before it is large, whatever it has. Well within `elsewhereSeconds` of db/backfill/runs.ts. */
const companyMsMax = 20_000;

/** What a company that is read with others may take. */
export interface Allowance {
  /** @throws TooMuch when a listing is long, or when the company has taken its time. */
  check(total: number | null): void;
  /** Whether the company has taken its time. */
  isSpent(): boolean;
}

/** A company is too large to be read with others. */
export class TooMuch extends Error {}

/** Begins what a company may take; `now` is in milliseconds. */
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

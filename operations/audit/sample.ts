import { createHash } from 'node:crypto';

/** A sample of companies to take: the same seed takes the same of the same companies. */
export interface SampleWanted {
  /** From 0 to 1; at least one company is taken. */
  readonly share: number;
  readonly seed: string;
}

/** What a sample of companies says about all of them. */
export interface Sample {
  readonly seed: string;
  readonly companies: number;
  /** All companies, from which these were taken. */
  readonly of: number;
  /** Companies of the sample with a difference. */
  readonly different: number;
  readonly confidence: number;
  /** With this confidence no more of all companies have a difference. */
  readonly differentMax: number;
}

const confidence = 0.95;

/** Takes a random sample without replacement, by the digests of seed and company. */
export function sampleOf(companies: readonly string[], { share, seed }: SampleWanted): string[] {
  const digest = (id: string): string => createHash('sha256').update(`${seed} ${id}`).digest('hex');
  const drawn = companies.map((id) => ({ id, digest: digest(id) }));
  return drawn
    .sort((a, b) => (a.digest < b.digest ? -1 : 1))
    .slice(0, Math.ceil(share * companies.length))
    .map(({ id }) => id);
}

/** Describes a sample that was audited. */
export function describeSample(
  seed: string,
  { companies, of, different }: Pick<Sample, 'companies' | 'of' | 'different'>,
): Sample {
  const differentMax = mostDifferent({ companies, of, different });
  return { seed, companies, of, different, confidence, differentMax };
}

/**
 * Returns the exact upper bound of a sample without replacement (Clopper and Pearson's, hypergeometric): of
 * more companies that differ, a sample would show so few with a chance below 5 %.
 */
function mostDifferent({ companies, of, different }: Pick<Sample, 'companies' | 'of' | 'different'>): number {
  const logs = logFactorials(of);
  let least = different;
  let most = of - (companies - different);
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (chanceOfAtMost(different, { companies, of, marked: middle }, logs) > 1 - confidence) least = middle;
    else most = middle - 1;
  }
  return least;
}

/** The probability that at most this many of a sample are among the marked companies of all. */
function chanceOfAtMost(
  few: number,
  { companies, of, marked }: { readonly companies: number; readonly of: number; readonly marked: number },
  logs: Float64Array,
): number {
  const choose = (n: number, k: number): number => (logs[n] ?? 0) - (logs[k] ?? 0) - (logs[n - k] ?? 0);
  let chance = 0;
  for (let k = Math.max(0, companies - (of - marked)); k <= Math.min(few, marked, companies); k++)
    chance += Math.exp(choose(marked, k) + choose(of - marked, companies - k) - choose(of, companies));
  return chance;
}

function logFactorials(most: number): Float64Array {
  const logs = new Float64Array(most + 1);
  for (let n = 2; n <= most; n++) logs[n] = (logs[n - 1] ?? 0) + Math.log(n);
  return logs;
}

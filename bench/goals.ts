import type { SizeName } from './size.ts';

/** A goal with which a figure is compared. */
export type Goal = { readonly atLeast: number } | { readonly atMost: number } | { readonly below: number };

/** Goals at full size, by measure and figure. Other figures have no goal. */
export const goals: Readonly<Record<string, Readonly<Record<string, Goal>>>> = {
  cost: {
    allMsInFlight1: { atMost: 16 },
    allMsInFlight16: { atMost: 1.6 },
    allMsInFlight64: { atMost: 0.6 },
    allMsInFlight512: { atMost: 0.42 },
  },
  lone: {
    ackP50Ms: { below: 20 },
    rowP50Ms: { below: 35 },
    rowP99Ms: { below: 300 },
    recordP50Ms: { below: 120 },
  },
  live: {
    acknowledgedPerSecond: { atLeast: 500 },
    answerP99Ms: { below: 250 },
    rowP50Ms: { below: 120 },
    rowP99Ms: { below: 1_000 },
    recordsPerSecond: { atLeast: 300 },
    // No growth, except what repeated measurements of resident memory differ by.
    rssGrowthMb: { atMost: 10 },
  },
  backfill: {
    ofFetchOnly: { atLeast: 0.2 },
    unchangedTimesFirst: { atLeast: 3 },
    companiesPerSecond: { atLeast: 60 },
  },
  intervals: { freshOfCopy: { atLeast: 0.55 }, overlapOfCopy: { atLeast: 0.45 } },
  analytics: {
    slowestViewMs: { atMost: 300 },
    monthlyUsageMs: { atMost: 500 },
    monthlySumsMs: { atMost: 500 },
    slowestJoinSeconds: { atMost: 30 },
    slowestJoinOfOneMs: { atMost: 300 },
    largeUsageOfMonthsMs: { atMost: 2_000 },
    largeMonthlySumsMs: { atMost: 2_000 },
    loadOfBare: { atLeast: 0.85 },
  },
  console: {
    healthMs: { atMost: 50 },
    slowestPageMs: { atMost: 300 },
    largeHealthMs: { atMost: 50 },
    largeSlowestPageMs: { atMost: 300 },
  },
  peers: {
    backfillTimesDlt: { atLeast: 3 },
    acknowledged512TimesStripeSync: { atLeast: 4 },
    acknowledged64TimesStripeSync: { atLeast: 1 },
    appliedTimesStripeSync: { atLeast: 2 },
  },
  growth: {
    documentsLastOfFirst: { atLeast: 0.8 },
    eventsWaitingOfNone: { atLeast: 0.8 },
    statementsAsCheap: { atLeast: 1 },
  },
};

/** Measures whose goals depend on the amount of data, so that a smaller size proves nothing. */
const aboutSize: ReadonlySet<string> = new Set(['analytics', 'console']);

/** Whether the figures of a measure at this size are compared with its goals. */
export const isJudged = (measure: string, size: SizeName): boolean =>
  size === 'full' || !aboutSize.has(measure);

export function isReached(goal: Goal, figure: number): boolean {
  if ('atLeast' in goal) return figure >= goal.atLeast;
  return 'atMost' in goal ? figure <= goal.atMost : figure < goal.below;
}

export function describeGoal(goal: Goal): string {
  if ('atLeast' in goal) return `≥ ${goal.atLeast}`;
  return 'atMost' in goal ? `≤ ${goal.atMost}` : `< ${goal.below}`;
}

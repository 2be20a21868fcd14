/** A goal that a figure is held against. */
export type Goal = { readonly atLeast: number } | { readonly atMost: number } | { readonly below: number };

/** The goals of the full size, by measure and figure; other figures are for looking at. */
export const goals: Readonly<Record<string, Readonly<Record<string, Goal>>>> = {
  acknowledged: {
    ofBare512: { atLeast: 0.55 },
    timesUngrouped: { atLeast: 20 },
    p99Ms512: { below: 400 },
  },
  applied: { ofBare: { atLeast: 0.5 }, timesOnePerEvent: { atLeast: 60 } },
  lone: {
    ackP50Ms: { below: 20 },
    rowP50Ms: { below: 60 },
    rowP99Ms: { below: 300 },
    recordP50Ms: { below: 250 },
  },
  backfill: {
    ofFetchOnly: { atLeast: 0.2 },
    unchangedTimesFirst: { atLeast: 3 },
    companiesPerSecond: { atLeast: 60 },
  },
  intervals: { freshOfCopy: { atLeast: 0.5 }, overlapOfCopy: { atLeast: 0.4 } },
  'catch-up': { fresh1: { atMost: 1 }, fresh1000: { atMost: 2 }, changed1000: { atMost: 12 } },
  catalogue: { ofWithout: { atLeast: 0.9 } },
  analytics: {
    slowestViewMs: { atMost: 300 },
    monthlyUsageMs: { atMost: 5_000 },
    loadOfBare: { atLeast: 0.85 },
  },
  audit: { peakOfTenth: { atMost: 1.2 }, secondHalfOfFirst: { atMost: 1.1 } },
  history: { eventsPer1000: { atMost: 300 } },
  sandbox: { deliveriesPerSecond: { atLeast: 3_000 }, pagesPerSecond: { atLeast: 3_000 } },
};

export function isReached(goal: Goal, figure: number): boolean {
  if ('atLeast' in goal) return figure >= goal.atLeast;
  return 'atMost' in goal ? figure <= goal.atMost : figure < goal.below;
}

export function describeGoal(goal: Goal): string {
  if ('atLeast' in goal) return `≥ ${goal.atLeast}`;
  return 'atMost' in goal ? `≤ ${goal.atMost}` : `< ${goal.below}`;
}

import { batches } from '../contract/limits.ts';
import { monthsPolicy } from '../contract/retry-policy.ts';
import { keepMonths } from '../db/months.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';

export function monthActivities({ checks: { db }, now }: ActivityDependencies) {
  return {
    /** Keeps the months of companies that changed, until none is left or the time is up. Returns how many. */
    keepMonths: mapFailures(async (_: object): Promise<number> => {
      const until = now() + monthsPolicy.keepMs;
      const { quietSeconds } = monthsPolicy;
      const companiesMax: number = batches.companiesOfMonths;
      let kept = 0;
      for (let more = companiesMax; more === companiesMax && now() < until; kept += more)
        more = await keepMonths(db, { companiesMax, quietSeconds });
      return kept;
    }),
  };
}

import { monthsPolicy } from '../contract/retry-policy.ts';
import { keepMonths } from '../db/watch/months.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';

export function monthActivities({ checks: { db } }: Pick<ActivityDependencies, 'checks'>) {
  return {
    /** Computes the months of companies that changed. Returns how many companies that were. */
    keepMonths: mapFailures((_: object): Promise<number> => keepMonths(db, monthsPolicy)),
  };
}

import { Context } from '@temporalio/activity';
import type { CheckKind } from '../contract/names.ts';
import { monthsPolicy } from '../contract/retry-policy.ts';
import { refreshDataIssues, refreshFieldIssues, sumOfIssues } from '../db/checks/check-data.ts';
import { companiesToCheck, deleteOutdatedChecks } from '../db/checks/companies-to-check.ts';
import { keepMonths } from '../db/watch/months.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';

export interface DataCheck {
  /** The run before it. If companies were chosen for it, only they are checked. */
  readonly runId: string;
  readonly kinds: readonly CheckKind[];
}

export function checkActivities({ checks: { db }, checksOff: off, log }: ActivityDependencies) {
  return {
    /** Opens and closes issues of companies that changed since their last check; resumes where it stopped. */
    checkData: mapFailures(async (input: DataCheck): Promise<void> => {
      const { runId, kinds } = input;
      const { cancellationSignal } = Context.current();
      // So that a report right after a backfill is correct, without waiting for the next minute.
      await keepMonths(db, monthsPolicy);
      // The first call names no companies. It closes the issues of checks that are off.
      let refreshed = await refreshDataIssues(db, [], { kinds, off });
      refreshed = sumOfIssues(refreshed, await refreshFieldIssues(db, off));
      await deleteOutdatedChecks(db, off);
      const companies = await companiesToCheck(db, input);
      for (const { id, kinds: due } of companies) {
        cancellationSignal.throwIfAborted();
        const issues = await refreshDataIssues(db, [id], { kinds: due, off });
        refreshed = sumOfIssues(refreshed, issues);
      }
      const { opened, closed } = refreshed;
      if (opened + closed > 0)
        log.info({ runId, companies: companies.length, opened, closed }, 'the data was checked');
    }),
  };
}

export function monthActivities({ checks: { db } }: Pick<ActivityDependencies, 'checks'>) {
  return {
    /** Computes the months of companies that changed. Returns how many companies that were. */
    keepMonths: mapFailures((_: object): Promise<number> => keepMonths(db, monthsPolicy)),
  };
}

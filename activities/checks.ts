import { Context } from '@temporalio/activity';
import type { CheckKind } from '../contract/names.ts';
import { monthsPolicy } from '../contract/retry-policy.ts';
import { chosenCompanies, isOfChosen } from '../db/backfill/chosen-companies.ts';
import { type CompanyToCheck, refreshDataIssues, sumOfIssues } from '../db/checks/check-data.ts';
import { companiesToCheck, deleteOutdatedChecks } from '../db/checks/companies-to-check.ts';
import { keepMonths } from '../db/watch/months.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { noteCursor } from './heartbeat.ts';
import { mapFailures } from './map-failures.ts';

export interface DataCheck {
  /**
   * The run before it. The companies that were chosen for it are checked, or else all companies whose data
   * may have changed.
   */
  readonly runId: string;
  readonly kinds: readonly CheckKind[];
}

export function checkActivities({ checks: { db }, checksOff: off, log }: ActivityDependencies) {
  /** Returns companies in order of their ids, so that the last id marks how far an attempt came. */
  async function toCheck({ runId, kinds }: DataCheck): Promise<CompanyToCheck[]> {
    if (await isOfChosen(db, runId)) return (await chosenCompanies(db, runId)).map((id) => ({ id, kinds }));
    await deleteOutdatedChecks(db, off);
    return await companiesToCheck(db, kinds);
  }

  return {
    /** Opens and closes issues, company by company. Another attempt resumes where this one stopped. */
    checkData: mapFailures(async (input: DataCheck): Promise<void> => {
      const { runId, kinds } = input;
      const { info, cancellationSignal } = Context.current();
      const after = (info.heartbeatDetails as string | undefined) ?? '';
      // Whoever asks for a report right after a backfill need not wait for the next minute.
      await keepMonths(db, monthsPolicy);
      // Called without companies first, which closes the issues of checks that are off.
      let refreshed = await refreshDataIssues(db, [], { kinds, off });
      const companies = (await toCheck(input)).filter(({ id }) => id > after);
      for (const { id, kinds: due } of companies) {
        cancellationSignal.throwIfAborted();
        const issues = await refreshDataIssues(db, [id], { kinds: due, off });
        refreshed = sumOfIssues(refreshed, issues);
        noteCursor(id);
      }
      const { opened, closed } = refreshed;
      if (opened + closed > 0)
        log.info({ runId, companies: companies.length, opened, closed }, 'the data was checked');
    }),
  };
}

import pMap from 'p-map';
import type { CheckName } from '../contract/check-names.ts';
import { type IssuesRefreshed, refreshDataIssues, sumOfIssues } from '../db/checks/check-data.ts';
import { allCompanies } from '../db/checks/companies-to-check.ts';
import type { Database } from '../db/connection/connect.ts';

/** Progress of checking companies. */
export interface CheckingProgress {
  readonly done: number;
  readonly of: number;
  readonly refreshed: IssuesRefreshed;
}

/** Two, as somebody waits for the result; the worker checks one company at a time. */
const companiesAtOnce = 2;

/** Checks one company, or all, with every check that is not off, whether or not the data changed. */
export async function checkData(
  db: Database,
  options: {
    readonly companyId?: string | undefined;
    readonly off: readonly CheckName[];
    readonly onProgress?: (progress: CheckingProgress) => void;
  },
): Promise<IssuesRefreshed> {
  const { companyId, off, onProgress } = options;
  const ids = companyId === undefined ? await allCompanies(db) : [companyId];
  // Without companies this closes the open issues of checks that are off.
  let refreshed = await refreshDataIssues(db, [], { off });
  let done = 0;
  const look = async (id: string): Promise<void> => {
    const ofCompany = await refreshDataIssues(db, [id], { off });
    refreshed = sumOfIssues(refreshed, ofCompany);
    done += 1;
    onProgress?.({ done, of: ids.length, refreshed });
  };
  await pMap(ids, look, { concurrency: companiesAtOnce });
  return refreshed;
}

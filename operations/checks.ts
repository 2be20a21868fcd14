import pMap from 'p-map';
import type { CheckName } from '../contract/names.ts';
import { type IssuesRefreshed, refreshDataIssues, sumOfIssues } from '../db/checks/check-data.ts';
import { allCompanies } from '../db/checks/companies-to-check.ts';
import type { Database } from '../db/connect.ts';

/** How far a look at all companies is. */
export interface CheckingProgress {
  readonly done: number;
  readonly of: number;
  readonly refreshed: IssuesRefreshed;
}

/** Somebody waits for it, so that it may take two processors; the worker looks at one company at a time. */
const companiesAtOnce = 2;

/** Looks at one company, or at all, with every check that is not off, whether or not anything changed. */
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
  // Without companies, too: what is open of a check that is off is closed.
  let refreshed = await refreshDataIssues(db, [], { off });
  let done = 0;
  const look = async (id: string): Promise<void> => {
    const one = await refreshDataIssues(db, [id], { off });
    refreshed = sumOfIssues(refreshed, one);
    done += 1;
    onProgress?.({ done, of: ids.length, refreshed });
  };
  await pMap(ids, look, { concurrency: companiesAtOnce });
  return refreshed;
}

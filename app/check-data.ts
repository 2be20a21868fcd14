import type { CheckName } from '../contract/names.ts';
import { type IssuesRefreshed, refreshDataIssues, sumOfIssues } from '../db/check-data.ts';
import { allCompanies } from '../db/companies-to-check.ts';
import type { Database } from '../db/connect.ts';

export { acknowledgeIssue, type IssuesRefreshed } from '../db/check-data.ts';

/** How far a look at all companies is. */
export interface CheckingProgress {
  readonly done: number;
  readonly of: number;
  readonly refreshed: IssuesRefreshed;
}

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
  for (const [at, id] of ids.entries()) {
    refreshed = sumOfIssues(refreshed, await refreshDataIssues(db, [id], { off }));
    onProgress?.({ done: at + 1, of: ids.length, refreshed });
  }
  return refreshed;
}

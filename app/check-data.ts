import type { CheckName } from '../contract/names.ts';
import {
  companiesToCheck,
  companiesTogether,
  type IssuesRefreshed,
  refreshDataIssues,
} from '../db/check-data.ts';
import type { Database } from '../db/connect.ts';

export { acknowledgeIssue, type IssuesRefreshed } from '../db/check-data.ts';

/** Looks at one company, or at all, with every check that is not off, as the worker does after a backfill. */
export async function checkData(
  db: Database,
  { companyId, off }: { readonly companyId?: string | undefined; readonly off: readonly CheckName[] },
): Promise<IssuesRefreshed> {
  if (companyId !== undefined) return await refreshDataIssues(db, [companyId], { off });
  let sum: IssuesRefreshed = { opened: 0, closed: 0, stillOpen: 0 };
  let after: string | null = null;
  do {
    const ids: string[] = await companiesToCheck(db, after, companiesTogether);
    const { opened, closed, stillOpen } = await refreshDataIssues(db, ids, { off });
    sum = { opened: sum.opened + opened, closed: sum.closed + closed, stillOpen: sum.stillOpen + stillOpen };
    after = ids.length < companiesTogether ? null : (ids.at(-1) ?? null);
  } while (after !== null);
  return sum;
}

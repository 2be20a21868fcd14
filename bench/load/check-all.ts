import pMap from 'p-map';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { allCompanies } from '../../db/checks/companies-to-check.ts';
import type { Database } from '../../db/connection/connect.ts';

/** Checks the data of all companies, two at a time. */
export async function checkAll(db: Database): Promise<void> {
  await pMap(await allCompanies(db), (id) => refreshDataIssues(db, [id]), { concurrency: 2 });
}

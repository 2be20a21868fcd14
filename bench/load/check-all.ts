import pMap from 'p-map';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import type { Database } from '../../db/connection/connect.ts';
import { companies } from '../../db/schema/utility.ts';

export async function allCompanies(db: Database): Promise<string[]> {
  const all = await db.select({ id: companies.id }).from(companies).orderBy(companies.id);
  return all.map(({ id }) => id);
}

/** Checks the data of all companies, two at a time. */
export async function checkAll(db: Database): Promise<void> {
  await pMap(await allCompanies(db), (id) => refreshDataIssues(db, [id]), { concurrency: 2 });
}

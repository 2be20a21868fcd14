import { and, isNull, or, sql } from 'drizzle-orm';
import { recordRead } from '../backfill/companies.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { companies } from '../schema/utility.ts';

/**
 * Lists live companies that the service's list need not contain: companies that the settings name,
 * and companies that the list never contained although records of them were read.
 */
export async function unlistedCompanies(db: Executor, configured: readonly string[]) {
  const { id, raw, deletedAt } = companies;
  const isNamed = isAmong(id, configured, 'uuid');
  const unlisted = await db
    .select({ id, isNamed: sql<boolean>`${isNamed}`, wasRead: sql<boolean>`${recordRead(id)}` })
    .from(companies)
    .where(and(isNull(deletedAt), or(isNull(raw), isNamed)))
    .orderBy(id);
  return unlisted.filter((company) => company.isNamed || company.wasRead);
}

/** Lists live companies, for a service that does not list companies. */
export async function liveCompanies(db: Executor): Promise<string[]> {
  const live = await db
    .select({ id: companies.id })
    .from(companies)
    .where(isNull(companies.deletedAt))
    .orderBy(companies.id);
  return live.map(({ id }) => id);
}

import { and, eq, isNotNull, isNull } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
import { companies } from '../schema/utility.ts';

/** Inserts or restores companies that have to be read although no listing contains them. */
export async function noteCompanies(db: Executor, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db
    .insert(companies)
    .values([...new Set(ids)].sort().map((id) => ({ id })))
    .onConflictDoUpdate({
      target: companies.id,
      set: { absentSince: null, absentBy: null },
      setWhere: isNotNull(companies.deletedAt),
    });
}

/** Whether the warehouse has a row of a company, live or tombstoned. */
export async function hasCompany(db: Executor, id: string): Promise<boolean> {
  const rows = await db.select({ id: companies.id }).from(companies).where(eq(companies.id, id));
  return rows.length > 0;
}

/** Lists live companies with an external id. The service does not promise that it is unique. */
export async function companiesOfExternalId(db: Executor, externalId: string): Promise<string[]> {
  const rows = await db
    .select({ id: companies.id })
    .from(companies)
    .where(and(eq(companies.externalId, externalId), isNull(companies.deletedAt)));
  return rows.map(({ id }) => id);
}

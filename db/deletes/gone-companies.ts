import { and, eq, isNotNull, sql } from 'drizzle-orm';
import { anyOf } from '../backfill/strangers.ts';
import { array, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { type CompanyListed, listedByCompanies, resources } from '../resources.ts';
import { companies } from '../schema/utility.ts';

/**
 * Lists companies that the service listed once, and that are tombstoned because their list lacks them.
 * Companies that a pass over the list contains are left out, because Postgres may have refused their records.
 */
export async function goneCompanies(db: Executor, listedIds: readonly string[]): Promise<string[]> {
  const listed = array(printedUuids(listedIds), 'text');
  const gone = await db
    .select({ id: companies.id })
    .from(companies)
    .where(
      and(
        eq(companies.deletedReason, 'absent'),
        isNotNull(companies.raw),
        sql`not (${companies.id}::text = any(${listed}))`,
      ),
    )
    .orderBy(companies.id);
  return gone.map(({ id }) => id);
}

/** A listing of a company. */
export interface CompanyListing {
  readonly companyId: string;
  readonly resource: CompanyListed;
}

/** Lists the listings of companies that have live rows. */
export async function livingOf(
  db: Executor,
  companyIds: readonly string[],
): Promise<CompanyListing[]> {
  const living = listedByCompanies.map(
    (resource, place) => sql`
      select ${resource} as resource, ${place}::int as place
      where ${anyOf(resources[resource].table, sql`asked.id`, sql`${resources[resource].table.deletedAt} is null`)}`,
  );
  const result = await db.execute<Record<string, unknown> & CompanyListing>(sql`
    select asked.id as "companyId", living.resource
    from unnest(${array(companyIds, 'uuid')}) as asked (id)
      cross join lateral (${sql.join(living, sql` union all `)}
      ) living
    order by asked.id, living.place`);
  return result.rows;
}

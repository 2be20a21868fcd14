import { and, eq, isNotNull, sql } from 'drizzle-orm';
import { array, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { anyOf } from '../records/companies.ts';
import { type CompanyListed, listedByCompanies, resources } from '../resources.ts';
import { companies } from '../schema/utility.ts';

/**
 * Lists companies that are tombstoned because the list of companies lacks them. Companies in this
 * pass are left out: they may stay tombstoned because Postgres refused their records.
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

/** Lists those listings of the given companies that have live rows. */
export async function livingOf(db: Executor, companyIds: readonly string[]) {
  const lives = listedByCompanies.map((resource) => {
    const { table } = resources[resource];
    const own = sql`${table.deletedAt} is null and ${table.listedBy} is null`;
    const ofOthers = sql`exists (
          select
          from ${table}
          where ${table.listedBy} = asked.id
            and ${table.deletedAt} is null
          offset 0
        )`;
    return sql`when ${resource} then ${anyOf(table, sql`asked.id`, own)} or ${ofOthers}`;
  });
  return await db
    .select({
      companyId: sql<string>`asked.id`,
      resource: sql<CompanyListed>`living.resource`,
    })
    .from(sql`unnest(${array(companyIds, 'uuid')}) as asked (id)`)
    .crossJoin(
      sql`unnest(${array(listedByCompanies, 'text')}) with ordinality as living (resource, place)`,
    )
    .where(sql`case living.resource ${sql.join(lives, sql` `)} end`)
    .orderBy(sql`asked.id, living.place`);
}

import { and, eq, isNotNull, sql } from 'drizzle-orm';
import { array, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { anyOf } from '../records/companies.ts';
import { type CompanyListed, listedByCompanies, resources, row } from '../resources.ts';
import { companies, sites } from '../schema/utility.ts';
import { absenceOf } from './absence.ts';
import { note } from './tombstone.ts';

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

/**
 * Lists the companies whose sites a pass has to judge: companies that the pass read or that are
 * tombstoned as absent, with live sites that their record does not name and that nothing touched
 * since the pass began, or with notes about sites that are not applied. The list of sites in a
 * company's record is complete; without a list, the company is not judged. A tombstoned company has
 * no sites. `confirmed`: the record had these sites before the pass.
 */
export async function sitesInDoubt(db: Executor, companyIds: readonly string[], beganAt: string) {
  const began = sql`${beganAt}::timestamptz`;
  const named = db
    .select({ ids: sql<string[]>`coalesce(array_agg(id), '{}')`.as('ids') })
    .from(
      sql`jsonb_array_elements(metersync.elements(${companies.raw} -> 'sites')) site
        cross join lateral (select metersync.uuid_of(site ->> 'id')::text as id) ids`,
    )
    .where(sql`id is not null and ${companies.deletedAt} is null`)
    .as('named');
  const isAbsent = sql`exists (
      select
      from ${sites} ${row}
      where ${row.companyId} = ${companies.id}
        and ${row.deletedAt} is null
        and ${row.id}::text not in (select unnest(${named.ids}))
        and ${absenceOf('sites', began)} <> 'shown'
    )`;
  const isNoted = sql`${companies.id} in ${db
    .select({ companyId: note.companyId })
    .from(note)
    .where(sql`${note.resource} = 'sites' and ${note.state} <> 'applied'`)}`;
  return await db
    .select({
      companyId: companies.id,
      /** The sites that the company's record names. */
      named: named.ids,
      confirmed: sql<boolean>`${companies.deletedAt} is not null
        or coalesce(${companies.syncedAt} < ${began}, false)`,
    })
    .from(companies)
    .crossJoinLateral(named)
    .where(
      sql`(
        ${companies.id}::text = any(${array(printedUuids(companyIds), 'text')})
        or ${companies.deletedReason} = 'absent'
      )
      and jsonb_typeof(${companies.raw} -> 'sites') = 'array'
      and (${isAbsent} or ${isNoted})`,
    )
    .orderBy(companies.id);
}

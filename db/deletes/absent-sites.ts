import { type SQL, sql } from 'drizzle-orm';
import { array, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { deletes } from '../schema/metersync.ts';
import { companies, sites } from '../schema/utility.ts';
import { untouchedSince } from './explained.ts';
import { row } from './tombstone.ts';

/** A company with sites that its record no longer names, or that is tombstoned itself. */
export interface AbsentSites {
  readonly companyId: string;
  /** Its sites that the record names. */
  readonly named: readonly string[];
  readonly absent: number;
  /** Whether the record already had these sites before the pass. */
  readonly confirmed: boolean;
}

/**
 * Lists companies that have fewer sites now: companies that a pass read with fewer sites and that nothing has
 * touched since it began, and tombstoned companies with live sites. A company's sites are one set if its
 * record has a list of them.
 */
export async function absentSites(
  db: Executor,
  companyIds: readonly string[],
  beganAt: string,
): Promise<AbsentSites[]> {
  const began = sql`${beganAt}::timestamptz`;
  const result = await db.execute<Record<string, unknown> & AbsentSites>(sql`
    with seen as materialized (${companiesSeen(companyIds, began)}
    ), named as materialized (
      select
        seen.id as company_id,
        metersync.uuid_of(site ->> 'id')::text as id
      from seen
        cross join jsonb_array_elements(seen.raw -> 'sites') as site
      where not gone
    )
    select
      seen.id as "companyId",
      seen.confirmed,
      count(*)::int as absent,
      array(
        select named.id
        from named
        where named.company_id = seen.id
          and named.id is not null
      ) as named
    from seen
      join ${sites} ${row} on ${row.companyId} = seen.id
      left join named n on n.company_id = seen.id and n.id = ${row.id}::text
    where ${row.deletedAt} is null
      and n.id is null
      and ${untouchedSince('sites', began)}
    group by seen.id, seen.confirmed
    order by seen.id`);
  return result.rows;
}

/**
 * Companies that a pass read or that are tombstoned, and whether that state is older than the pass.
 */
const companiesSeen = (companyIds: readonly string[], began: SQL): SQL => sql`
  select
    ${companies.id},
    ${companies.raw},
    ${companies.deletedAt} is not null as gone,
    ${companies.deletedAt} is not null
      or coalesce(${companies.syncedAt} < ${began}, false) as confirmed
  from ${companies}
  where (
      ${companies.id}::text = any(${array(printedUuids(companyIds), 'text')})
      or ${companies.deletedReason} = 'absent'
    )
    and jsonb_typeof(${companies.raw} -> 'sites') = 'array'`;

/** Ends decisions to keep sites that the records of companies name again. */
export async function endSiteDecisions(db: Executor, companyIds: readonly string[]): Promise<void> {
  await db.execute(sql`
    delete from ${deletes} note
    using ${companies}
    where note.state in ('rejected', 'undone')
      and note.resource = 'sites'
      and note.company_id = ${companies.id}
      and ${companies.id}::text = any(${array(printedUuids(companyIds), 'text')})
      and exists (
        select
        from jsonb_array_elements(metersync.elements(${companies.raw} -> 'sites')) site
        where metersync.uuid_of(site ->> 'id')::text = note.record_id
      )`);
}

/** Clears the quarantine of sites that are no longer in doubt, for companies that a pass read. */
export async function clearSiteQuarantine(
  db: Executor,
  companyIds: readonly string[],
  inDoubt: readonly string[],
): Promise<void> {
  await db.execute(sql`
    delete from ${deletes}
    where ${deletes.state} = 'quarantined'
      and ${deletes.resource} = 'sites'
      and ${deletes.companyId}::text = any(${array(printedUuids(companyIds), 'text')})
      and not (${deletes.companyId} = any(${array(inDoubt, 'uuid')}))`);
}

import { sql } from 'drizzle-orm';
import { untouchedSince } from './absent.ts';
import { array, printedUuids } from './arrays.ts';
import type { Executor } from './connect.ts';

/** A company with sites that its record, as it was read last, no longer names; or that is gone itself. */
export interface AbsentSites {
  readonly companyId: string;
  /** Whether it is tombstoned, as the list of companies does not show it. */
  readonly gone: boolean;
  /** Its sites that the record names. */
  readonly named: readonly string[];
  readonly absent: number;
  /** Whether the record was already so before the pass. */
  readonly confirmed: boolean;
}

/**
 * Companies that a pass saw and that lack sites since, which nothing else touched since it began, and those that are gone
 * and whose sites are not. A company's sites are one set, where its record has a list of them.
 */
export async function absentSites(
  db: Executor,
  companyIds: readonly string[],
  beganAt: string,
): Promise<AbsentSites[]> {
  const result = await db.execute<Record<string, unknown> & AbsentSites>(sql`
    with seen as materialized (
      select id, raw, deleted_at is not null as gone,
        deleted_at is not null or coalesce(synced_at < ${beganAt}::timestamptz, false) as confirmed
      from utility.companies
      where (id::text = any(${array(printedUuids(companyIds), 'text')}) or deleted_reason = 'absent')
        and jsonb_typeof(raw -> 'sites') = 'array'
    ), named as materialized (
      select seen.id as company_id, lower(site ->> 'id') as id
      from seen, jsonb_array_elements(seen.raw -> 'sites') as site where not gone
    )
    select seen.id as "companyId", seen.gone, seen.confirmed, count(*)::int as absent,
      array(select named.id from named where named.company_id = seen.id and named.id is not null) as named
    from seen join utility.sites t on t.company_id = seen.id left join named n on n.company_id = seen.id and n.id = t.id::text
    where t.deleted_at is null and n.id is null and ${untouchedSince('sites', sql`${beganAt}::timestamptz`)}
    group by seen.id, seen.gone, seen.confirmed order by seen.id`);
  return result.rows;
}

/** Of companies that a pass saw: what is in no doubt any more waits for no decision. */
export async function clearSiteQuarantine(
  db: Executor,
  companyIds: readonly string[],
  inDoubt: readonly string[],
): Promise<void> {
  await db.execute(sql`
    delete from metersync.deletes where state = 'quarantined' and resource = 'sites'
      and company_id::text = any(${array(printedUuids(companyIds), 'text')})
      and not (company_id = any(${array(inDoubt, 'uuid')}))`);
}

import { type SQL, sql } from 'drizzle-orm';
import { row } from '../deletes/tombstone.ts';
import { companyNamed, type RecordResource } from '../resources.ts';
import { alsoListed } from '../schema/metersync.ts';
import { companies, documents } from '../schema/utility.ts';

/**
 * Decides which company owns a record, independently of the order of reads. The owner is the
 * company that the record names; for usage, the company of its document. If neither is known, the
 * owner is the company that lists the record, or the company with the least id if several list it.
 * Other companies that list the record are in `metersync.also_listed`, and the record is absent
 * only if none of them lists it. Sites are listed by the records of companies.
 */

/** Whether the record of a row names its owner. `held` is the alias of the row. */
export const saysOwner = (resource: RecordResource, held: SQL): SQL => {
  const named = sql`${companyNamed(sql`${held}.raw`)} is not null`;
  return resource === 'usageData' ? sql`(${held}.document_id is not null or ${named})` : named;
};

/**
 * The owner of a site that the record of the company `owner` contains. The current owner `held`
 * keeps the site if its id is less and its own record contains the site, too.
 */
export const ownerOfSite = (id: SQL, held: SQL, owner: SQL): SQL => sql`case
        when ${held} < ${owner}
          and exists (
            select
            from ${companies}
              cross join jsonb_array_elements(metersync.elements(raw -> 'sites')) as site
            where ${companies.id} = ${held}
              and deleted_at is null
              and metersync.uuid_of(site ->> 'id') = ${id}
            offset 0
          )
        then ${held}
        else ${owner}
      end`;

/**
 * The owner of a record `r` that the company `owner` lists. `row` is the row of the record. The
 * owner of usage is the company that the record of its document names, because the row of the
 * document may be wrong, too. That record is only parsed if the document is not the lister's.
 */
export const ownerOf = (resource: RecordResource): SQL => {
  if (resource === 'sites') return ownerOfSite(sql`${row.id}`, sql`${row.companyId}`, sql`owner`);
  const ofDocument = sql`(
      select case
          when d.company_id = owner then owner
          else coalesce(${companyNamed(sql`d.raw`)}, d.company_id)
        end
      from ${documents} d
      where d.id = ${row}.document_id
      offset 0
    ), `;
  return sql`coalesce(
      ${resource === 'usageData' ? ofDocument : sql``}${companyNamed(sql`r`)},
      case when ${isAlsoListed(resource, sql`owner`)} then least(owner, ${row.companyId}) end,
      owner
    )`;
};

/** Whether `metersync.also_listed` notes that a company lists the record of a `row`. */
export const isAlsoListed = (resource: RecordResource, companyId: SQL): SQL => sql`exists (
      select
      from ${alsoListed} other
      where other.resource = ${resource}
        and other.record_id = ${row.id}::text
        and other.company_id = ${companyId}
      offset 0
    )`;

/** A `from` clause: live companies that list a `row` they do not own, as `other (company_id)`. */
export const alsoListing = (resource: RecordResource): SQL => sql`
        from (
            select ${alsoListed.companyId}
            from ${alsoListed}
            where ${alsoListed.resource} = ${resource}
              and ${alsoListed.recordId} = ${row.id}::text
            offset 0
          ) other
          cross join lateral (
            select
            from ${companies}
            where ${companies.id} = other.company_id
              and ${companies.deletedAt} is null
            offset 0
          ) living
        where other.company_id <> ${row.companyId}`;

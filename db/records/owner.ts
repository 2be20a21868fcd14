import { type SQL, sql } from 'drizzle-orm';
import { row } from '../deletes/tombstone.ts';
import { companyNamed, type RecordResource } from '../resources.ts';
import { alsoListed } from '../schema/metersync.ts';
import { companies, documents } from '../schema/utility.ts';

/**
 * Decides the one owner of a record, independent of which listings contain it and of the order of reads. It
 * is the company that the record names; for usage, the company of its document. Otherwise it is the company
 * that lists the record, or the one with the least id of several. Other companies that list it are in
 * `metersync.also_listed`, and the record is absent only if none of them lists it. Sites are listed by the
 * records of companies.
 */

/** Whether a row, given by its alias, names its owner. */
export const saysOwner = (resource: RecordResource, held: SQL): SQL => {
  const named = sql`${companyNamed(sql`${held}.raw`)} is not null`;
  return resource === 'usageData' ? sql`(${held}.document_id is not null or ${named})` : named;
};

/** The owner of a site that the record of `owner` names and another company owns. */
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

/** The owner of a record `r` that `owner` lists, with its row `row`. */
export const ownerOf = (resource: RecordResource): SQL => {
  if (resource === 'sites') return ownerOfSite(sql`${row.id}`, sql`${row.companyId}`, sql`owner`);
  const ofDocument = sql`(
      select ${documents.companyId}
      from ${documents}
      where ${documents.id} = ${row}.document_id
      offset 0
    ), `;
  return sql`coalesce(
      ${resource === 'usageData' ? ofDocument : sql``}${companyNamed(sql`r`)},
      case when ${isAlsoListed(resource, sql`owner`)} then least(owner, ${row.companyId}) end,
      owner
    )`;
};

/** Whether a company that is not the owner is noted as listing the record of a `row`. */
export const isAlsoListed = (resource: RecordResource, companyId: SQL): SQL => sql`exists (
      select
      from ${alsoListed} other
      where other.resource = ${resource}
        and other.record_id = ${row.id}::text
        and other.company_id = ${companyId}
      offset 0
    )`;

/** Live companies that also list the record of a `row`, as a table `other (company_id)`. */
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

import { type SQL, sql } from 'drizzle-orm';
import { array, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { row } from '../deletes/tombstone.ts';
import { companyNamed, idOf, type RecordResource, tableOf } from '../resources.ts';
import { alsoListed } from '../schema/metersync.ts';
import { companies, documents, usageData } from '../schema/utility.ts';

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

/**
 * Notes that a company lists records that another company owns. Records that name no owner move to
 * the company if its id is less.
 */
export async function noteListed(
  tx: Executor,
  resource: RecordResource,
  companyId: string,
  ids: readonly (string | null)[],
): Promise<void> {
  const asked = array(printedUuids(ids).sort(), 'text');
  const taken = await hot(tx, 'noteListed').execute<{ id: string }>(sql`
    with listed as materialized (
      select distinct held.id, held.company_id, held.yields
      from unnest(${asked}) as asked (id)
        cross join lateral (
          select
            ${row.id},
            ${row.companyId},
            ${row.companyId} > ${companyId}::uuid and not ${saysOwner(resource, sql`${row}`)} as yields
          from ${tableOf(resource)} ${row}
          where ${row.id} = ${idOf(resource, sql`asked.id`)}
            and ${row.companyId} <> ${companyId}::uuid
            and ${row.raw} is not null
            and ${row.deletedAt} is null
          offset 0
          for no key update
        ) held
    ), taken as (
      update ${tableOf(resource)} ${row}
      set company_id = ${companyId}::uuid
      where ${row.id} = any(array(select id from listed where yields))
      returning ${row.id}
    ), own as (
      delete from ${alsoListed}
      where ${alsoListed.resource} = ${resource}
        and ${alsoListed.companyId} = ${companyId}::uuid
        and ${alsoListed.recordId} = any(array(select id::text from listed where yields))
    ), others as (
      insert into ${alsoListed} (resource, record_id, company_id)
      select
        ${resource},
        id::text,
        case when yields then company_id else ${companyId}::uuid end
      from listed
      order by id
      on conflict do nothing
    )
    select id
    from taken`);
  if (resource === 'documents') await moveUsage(tx, taken.rows);
}

/**
 * Removes notes of records of other owners that a company no longer lists. Records that it owned only by
 * listing them go to the next company that lists them.
 */
export async function unlistRecords(
  tx: Executor,
  resource: RecordResource,
  companyId: string,
  listedIds: readonly string[],
): Promise<void> {
  const listed = array(printedUuids(listedIds), 'text');
  const inherited = await hot(tx, 'unlistRecords').execute<{ id: string }>(sql`
    with unlisted as (
      delete from ${alsoListed} other
      where other.company_id = ${companyId}::uuid
        and other.resource = ${resource}
        and not (other.record_id = any(${listed}))
    ), inherited as (
      update ${tableOf(resource)} ${row}
      set company_id = (
        select other.company_id${alsoListing(resource)}
        order by other.company_id
        limit 1
      )
      where ${row.companyId} = ${companyId}::uuid
        and ${row.deletedAt} is null
        -- Skips the search when no record of the kind is also listed.
        and (
          select true
          from ${alsoListed}
          where ${alsoListed.resource} = ${resource}
          order by ${alsoListed.recordId}
          limit 1
        )
        and not (${row.id}::text = any(${listed}))
        and not ${saysOwner(resource, sql`${row}`)}
        and exists (select${alsoListing(resource)})
      returning ${row.id}, ${row.companyId}
    ), own as (
      delete from ${alsoListed}
      where ctid = any(array(
        select heir.ctid
        from inherited
          cross join lateral (
            select ctid
            from ${alsoListed}
            where ${alsoListed.resource} = ${resource}
              and ${alsoListed.recordId} = inherited.id::text
              and ${alsoListed.companyId} = inherited.company_id
            offset 0
          ) heir
      ))
    )
    select id
    from inherited`);
  if (resource === 'documents') await moveUsage(tx, inherited.rows);
}

/** Moves the usage of documents to the owners of the documents. */
async function moveUsage(tx: Executor, moved: readonly { readonly id: string }[]): Promise<void> {
  if (moved.length > 0) await tx.execute(movingUsage(moved));
}

/** The same as a statement, or a step of one. `unless` is a condition on the rows. */
export const movingUsage = (moved: readonly { readonly id: string }[], unless?: SQL): SQL => {
  const ids = moved.map(({ id }) => id).sort();
  return sql`
    update ${usageData} u
    set company_id = (
      select ${documents.companyId}
      from ${documents}
      where ${documents.id} = u.document_id
    )
    where u.id = any(array(
      select theirs.id
      from unnest(${array(ids, 'uuid')}) as asked (id)
        cross join lateral (
          select company_id
          from ${documents}
          where id = asked.id
          offset 0
        ) d
        cross join lateral (
          select id
          from ${usageData}
          where document_id = asked.id
            and company_id is distinct from d.company_id
          offset 0
        ) theirs
      order by theirs.id
    ))
      ${unless ?? sql``}`;
};

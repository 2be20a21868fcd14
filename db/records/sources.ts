import { type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { companyNamed, type RecordResource, updatedOf } from '../resources.ts';
import { companies, documents, usageData } from '../schema/utility.ts';
import { items, type RecordPage, replacedIn } from './page.ts';
import type { UpsertSource } from './upsert.ts';

/** How the records of a page become rows, for `upsertRecords`. */
export function sourceOf(resource: RecordResource, page: RecordPage): UpsertSource {
  switch (resource) {
    case 'companies': {
      const from = page.existingOnly ? sql`item where ${hasRow(sql`item.r`)}` : sql`item`;
      return { items: items(page), page, from };
    }
    case 'sites':
      // Sites of a company whose record was refused are left out: no run would tombstone them.
      return {
        items: sql`${items(page)}, ${sitesOfCompanies(page)}`,
        page,
        from: sql`site where ${hasRow(sql`site.company`)}`,
      };
    case 'documents':
      return {
        items: items(page),
        page,
        begins: new Map([[documents.usageReadAt, readWith(page)]]),
      };
    case 'usageData':
      return usageSource(reportedUsage(page), page);
    default:
      return { items: items(page), page };
  }
}

const hasRow = (company: SQL): SQL => sql`exists (
      select from ${companies} existing
      where existing.id = (${company} ->> 'id')::uuid
      offset 0
    )`;

/** The sites embedded in companies `item`, as a step `site (r, place, owner, digest, company)`. */
const sitesOfCompanies = ({ replaced }: RecordPage): SQL => sql`site as (
    select
      s.r,
      item.place,
      (item.r ->> 'id')::uuid as owner,
      null::bytea as digest,
      ${replaced ? sql`${replacedIn('sites', sql`item.replaced`, sql`s.at - 1`)} as replaced,` : sql``}
      item.r as company
    from item
      cross join lateral jsonb_array_elements(metersync.elements(item.r -> 'sites'))
        with ordinality as s (r, at)
    where item.r ->> 'id' is not null
      and metersync.uuid_of(s.r ->> 'id') is not null
  )`;

/** When all usage of a new document was read: now, if its record lists usage that is written. */
const readWith = ({ usageOfRecords, readAt }: RecordPage): SQL =>
  usageOfRecords
    ? sql`case when ${listsUsage(sql`r`)} then ${readAt}::timestamptz end`
    : sql`null::timestamptz`;

/** Whether a record lists usage, each row with an id. Rows without a UUID are not written. */
export const listsUsage = (record: SQL): SQL => sql`jsonb_typeof(${record} -> 'usageData') = 'array'
          and not ${record} @? '$.usageData[*]
            ? (@.type() != "object" || !exists(@.id) || @.id == null)'`;

/**
 * A page of usage as a step `reported (r, place, owner, digest, document_id)`. A row that names no
 * document has the document in `documentOf`, or else the document of the existing row.
 */
export function reportedUsage(page: RecordPage): SQL {
  const listedFor = JSON.stringify(page.documentOf ?? {});
  return sql`${items(page)}, reported as materialized (
    select
      item.*,
      coalesce(
        metersync.uuid_of(metersync.document_sent(r)),
        (${listedFor}::jsonb ->> metersync.canonical_id(r ->> 'id'))::uuid,
        (
          select existing.document_id
          from ${usageData} existing
          where existing.id = (r ->> 'id')::uuid
        )
      ) as document_id
    from item
  )`;
}

/**
 * How a step `reported` becomes usage rows. Usage of a document that an event deleted is skipped,
 * so that an older page does not restore it, and so is a row whose document's usage was all read
 * later than this page, unless the row is newer than the stored row.
 */
export const usageSource = (reported: SQL, page: RecordPage): UpsertSource => ({
  items: reported,
  page,
  given: new Map<PgColumn, SQL>([
    [usageData.companyId, sql`coalesce(d.company_id, ${companyNamed(sql`r`)}, owner)`],
    [usageData.documentId, sql`document_id`],
    [usageData.documentDeletedAt, sql`d.deleted_at`],
  ]),
  from: sql`reported
      left join lateral (
        select company_id, deleted_at, deleted_reason, usage_read_at
        from ${documents}
        where id = document_id
        offset 0
      ) d on true
    where d.deleted_reason is distinct from 'event'
      and (
        d.usage_read_at is null
        or d.usage_read_at <= ${page.readAt}::timestamptz
        or exists (
          select from ${usageData} existing
          where existing.id = (r ->> 'id')::uuid
            and existing.updated < ${updatedOf('r')}
        )
      )`,
});

import { type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import {
  companyNamed,
  type RecordResource,
  type Resource,
  resources,
  updatedOf,
} from '../resources.ts';
import { alsoListed, rejectedRecords } from '../schema/reads.ts';
import { companies, documents, usageData } from '../schema/utility.ts';
import { displaced } from './also-listed.ts';
import { items, type RecordPage, replacedIn } from './page.ts';
import { refusedId } from './rejected.ts';
import { isListing, type UpsertSource, upsertRecords } from './upsert.ts';

/** A row that a page wrote. */
export interface WrittenRow extends Record<string, unknown> {
  readonly id: string;
  readonly inserted: boolean;
  /** Whether it shows what the company of the listing lists; true for other pages. */
  readonly own: boolean;
  /** Whether another company is known to list the record of a row of a listing that changed. */
  readonly shared: boolean;
  /** Whether the service went back to an older state than an earlier read showed. */
  readonly reverted: boolean;
}

/** A written document. */
export interface WrittenDocument extends WrittenRow {
  /** Whether its record is the source of its usage, and lists it, each row with an id. */
  readonly listsUsage: boolean;
  /** The texts that were replaced in its record, by their paths, as JSON; only if there are any. */
  readonly replaced?: string | null;
}

/**
 * Writes the rows of a page, and returns the rows that it inserted or changed, for documents as
 * `WrittenDocument`s. Also deletes earlier refusals of these records, because they were read
 * without error. The last part of the statement still sees the rows from before the write.
 */
export async function writeRecords(
  tx: Executor,
  resource: RecordResource,
  page: RecordPage,
  ids: readonly (string | null)[],
): Promise<WrittenRow[]> {
  const { table } = resources[resource];
  const listing = isListing(resources[resource], page);
  const replaced = page.replaced ? sql`, incoming.replaced::text as replaced` : sql``;
  const ofDocument = sql`, incoming.usage_read_at is not null as "listsUsage"${replaced}`;
  const refusedAs = resource === 'sites' ? 'companies' : resource;
  const refusedIds = ids.flatMap((id) => (id === null ? [] : [refusedId(id)]));
  const { rows } = await prepared(tx, 'writeRecords').execute<WrittenRow>(sql`
    with ${upsertRecords(resources[resource], sourceOf(resource, page))}, cleared as (
      delete from ${rejectedRecords}
      where resource = ${refusedAs}
        -- The planner expects ten ids from a subquery. For many ids, Postgres before 17 would read
        -- the whole table instead of looking them up.
        and record_id = any(array(select unnest(${array(refusedIds, 'text')})))
        and rejected_at < ${page.readAt}::timestamptz
    )${listing ? sql`, ${displaced(resource, page)}` : sql``}
    select
      written.id, written.inserted, written.own,
      ${listing ? isShared(resource) : sql`false`} as shared,
      ${isReverted(resources[resource])} as reverted${resource === 'documents' ? ofDocument : sql``}
    from written
      join incoming on incoming.id = written.id
      left join lateral (
        select * from ${table} where id = written.id and not written.inserted offset 0
      ) earlier on true`);
  return rows;
}

/** Whether another company is known to list the record of a `written` row of a listing. */
const isShared = (resource: RecordResource): SQL =>
  sql`written.own and not written.inserted and exists (
        select from ${alsoListed}
        where resource = ${resource}
          and record_id = written.id::text
        offset 0
      )`;

/** Whether a record of `incoming` is older than the row `earlier` that it replaces. */
function isReverted({ table: { updated, rawUpdated = updated } }: Resource): SQL {
  if (rawUpdated === undefined) return sql`false`;
  return sql`coalesce(earlier.${sql.identifier(rawUpdated.name)} > incoming.updated, false)`;
}

/** How the records of a page become rows, for `upsertRecords`. */
function sourceOf(resource: RecordResource, page: RecordPage): UpsertSource {
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
function sitesOfCompanies(page: RecordPage): SQL {
  const replaced = sql`${replacedIn('sites', sql`item.replaced`, sql`s.at - 1`)} as replaced,`;
  return sql`site as (
      select
        s.r, item.place, (item.r ->> 'id')::uuid as owner, null::bytea as digest,
        ${page.replaced ? replaced : sql``}
        item.r as company
      from item
        cross join lateral jsonb_array_elements(metersync.elements(item.r -> 'sites'))
          with ordinality as s (r, at)
      where item.r ->> 'id' is not null
        and metersync.uuid_of(s.r ->> 'id') is not null
    )`;
}

/**
 * When all usage of a new document was read: now, if its record is the source of its usage and lists
 * usage, each row with an id. Rows without a UUID are not written.
 */
const readWith = ({ usageOfRecords, readAt }: RecordPage): SQL =>
  usageOfRecords
    ? sql`case
          when jsonb_typeof(r -> 'usageData') = 'array'
            and not r @? '$.usageData[*]
              ? (@.type() != "object" || !exists(@.id) || @.id == null)'
          then ${readAt}::timestamptz
        end`
    : sql`null::timestamptz`;

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
          (select u.document_id from ${usageData} u where u.id = (r ->> 'id')::uuid)
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
          select from ${usageData} u
          where u.id = (r ->> 'id')::uuid and u.updated < ${updatedOf('r')}
        )
      )`,
});

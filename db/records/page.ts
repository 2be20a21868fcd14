import { type SQL, sql } from 'drizzle-orm';
import { JsonTokens } from '../../contract/json.ts';
import { array } from '../connection/arrays.ts';
import { companyNamed, type RecordResource, updatedOf } from '../resources.ts';
import { companies, documents, usageData } from '../schema/utility.ts';
import { isAhead, type Walk } from './fence.ts';

/** A page of records without secrets. Only Postgres parses it: no number becomes a float. */
export interface RecordPage {
  readonly body: string;
  /** Key of the items in the envelope; null if the body is a bare array, '' if it is one record. */
  readonly itemsKey: string | null;
  /** Set if `body` is an array of several bodies, each with its own items. */
  readonly joined?: boolean;
  /** The company whose listing the page belongs to, if any. */
  readonly companyId: string | null;
  /** Set if the records were requested by their ids, for the company `companyId`. */
  readonly byId?: boolean | undefined;
  readonly apiVersion: string;
  /** When the read began, by the warehouse's clock. */
  readonly readAt: string;
  /** When the walk began that the read belongs to; absent if the read is not part of a walk. */
  readonly walkBegan?: string | undefined;
  /** The walk whose page it is. If it is behind the fence of its listing, no record is written. */
  readonly walk?: Walk | undefined;
  /** For documents: whether their records are the source of their usage, because usage has no listing. */
  readonly usageOfRecords?: boolean;
  /**
   * Whether events caused the read. Then records in an older state than their rows are not counted:
   * the service may not show an announced state yet.
   */
  readonly confirms?: boolean;
  /** Whether to skip companies without a row; a backfill of the list inserts and reads them. */
  readonly existingOnly?: boolean | undefined;
  /** For usage data: the document of each row, by the row's id, if the row does not name it. */
  readonly documentOf?: Readonly<Record<string, string>>;
  /** Digests of the items in hex, in their order: see write-page.ts. */
  readonly digests?: readonly string[] | undefined;
  /**
   * For each item the texts that were replaced in it, by their paths, as JSON; null for none. Absent
   * if nothing was replaced in any item: see unholdable.ts.
   */
  readonly replaced?: readonly (string | null)[] | undefined;
}

export interface WrittenRows {
  readonly inserted: number;
  readonly changed: number;
}

/**
 * The records of a page as a table (r, place, owner, digest, replaced): `owner` lists them. It is
 * empty if the page is behind the fence of its listing.
 */
export function itemsOf({ walk, ...page }: RecordPage): SQL {
  const { companyId, digests = [], replaced = [] } = page;
  return sql`(
        select
          r, place, ${companyId}::uuid as owner, decode(digest, 'hex') as digest,
          replaced::jsonb
        from rows from (
            jsonb_array_elements(${itemList(page)}),
            unnest(${array(digests, 'text')}),
            unnest(${array(replaced, 'text')})
          ) with ordinality as t (r, digest, replaced, place)
        where ${walk ? isAhead(walk, 'page') : sql`true`}
      )`;
}

/** The records of a page as `itemsOf` has them, with what else decides their rows: see upsert.ts. */
export function recordsOf(resource: RecordResource, page: RecordPage): SQL {
  switch (resource) {
    case 'companies':
      return page.existingOnly
        ? sql`(select * from ${itemsOf(page)} item where ${hasRow})`
        : itemsOf(page);
    case 'sites':
      return sitesOfCompanies(page);
    case 'documents':
      return sql`(select *, ${readWith(page)} as usage_read_at from ${itemsOf(page)} item)`;
    case 'usageData':
      return withDocuments(reportedUsage(page), page.readAt);
    default:
      return itemsOf(page);
  }
}

/** Whether the company in the record of `item` has a row. */
const hasRow = sql`exists (
      select from ${companies} existing
      where existing.id = (item.r ->> 'id')::uuid
      offset 0
    )`;

/**
 * The sites in the records of companies. Sites of a company whose record was refused are left out:
 * no run would tombstone them.
 */
const sitesOfCompanies = (page: RecordPage): SQL => sql`(
      select
        site.r, item.place, (item.r ->> 'id')::uuid as owner, null::bytea as digest,
        ${replacedIn('sites', sql`item.replaced`, sql`site.at - 1`)} as replaced
      from ${itemsOf(page)} item
        cross join lateral jsonb_array_elements(metersync.elements(item.r -> 'sites'))
          with ordinality as site (r, at)
      where item.r ->> 'id' is not null
        and metersync.uuid_of(site.r ->> 'id') is not null
        and ${hasRow}
    )`;

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
 * The records of a page of usage, with `document_id`. A row that names no document has the document
 * in `documentOf`, or else the document of the existing row.
 */
export const reportedUsage = (page: RecordPage): SQL => sql`(
      select
        item.*,
        coalesce(
          metersync.uuid_of(metersync.document_sent(r)),
          (
            ${JSON.stringify(page.documentOf ?? {})}::jsonb ->> metersync.canonical_id(r ->> 'id')
          )::uuid,
          (select u.document_id from ${usageData} u where u.id = (r ->> 'id')::uuid)
        ) as document_id
      from ${itemsOf(page)} item
    )`;

/**
 * Records of usage with what their documents decide. Usage of a document that an event deleted is
 * left out, so that an older page does not restore it, and so is a row whose document's usage was
 * all read later than this page, unless the row is newer than the stored row.
 */
export const withDocuments = (usage: SQL, readAt: string): SQL => sql`(
      with reported as materialized (
        select * from ${usage} reported
      )
      select
        reported.*,
        coalesce(d.company_id, ${companyNamed(sql`r`)}, owner) as company_id,
        d.deleted_at as document_deleted_at
      from reported
        left join lateral (
          select company_id, deleted_at, deleted_reason, usage_read_at
          from ${documents}
          where id = document_id
          offset 0
        ) d on true
      where d.deleted_reason is distinct from 'event'
        and (
          d.usage_read_at is null
          or d.usage_read_at <= ${readAt}::timestamptz
          or exists (
            select from ${usageData} u
            where u.id = (r ->> 'id')::uuid and u.updated < ${updatedOf('r')}
          )
        )
    )`;

/**
 * The replaced texts of the part of a record that is at `place`, from 0, in the array `field`, with
 * their paths in the part.
 */
export const replacedIn = (field: 'sites' | 'usageData', replaced: SQL, place: SQL): SQL => {
  const start = sql`${sql.raw(`'${field}['`)} || ${place} || '].'`;
  return sql`(
        select jsonb_object_agg(substr(path, length(${start}) + 1), said)
        from jsonb_each(${replaced}) as texts (path, said)
        where starts_with(path, ${start})
      )`;
};

/** The items of a page as one array. */
export function itemList(page: Pick<RecordPage, 'body' | 'itemsKey' | 'joined'>): SQL {
  const body = sql`${page.body}::jsonb`;
  if (page.itemsKey === '') return page.joined ? body : sql`jsonb_build_array(${body})`;
  const of = (from: SQL): SQL =>
    page.itemsKey === null ? from : sql`${from} -> ${page.itemsKey}::text`;
  if (!page.joined) return of(body);
  return sql`(
        select coalesce(jsonb_agg(item), '[]')
        from jsonb_array_elements(${body}) part, jsonb_array_elements(${of(sql`part`)}) item
      )`;
}

/**
 * Cuts out the exact text of each record of a page (valid JSON), in order. In Postgres, an escape
 * that it cannot hold (NUL, a lone surrogate) would make the whole page unreadable.
 */
export function itemTexts({
  body,
  itemsKey,
  joined = false,
}: Pick<RecordPage, 'body' | 'itemsKey' | 'joined'>): string[] {
  if (itemsKey === '' && !joined) return [body];
  const pageDepth = joined ? 2 : 1;
  const itemsDepth = itemsKey === '' ? 1 : itemsKey === null ? pageDepth : pageDepth + 1;
  const tokens = new JsonTokens(body);
  const texts: string[] = [];
  let isItems = !itemsKey;
  let ofEarlierPages = 0;
  let from = 0;
  while (tokens.next()) {
    const { kind, depth } = tokens;
    if (kind === 'name' && depth === pageDepth && itemsKey) {
      isItems = tokens.name === itemsKey;
      // As in JSON.parse, the last of several members with the same name counts.
      if (isItems) texts.length = ofEarlierPages;
    }
    if (kind === 'close' && depth < pageDepth) ofEarlierPages = texts.length;
    if (kind === 'open' && depth === itemsDepth + 1) from = tokens.from;
    if (!isItems || depth !== itemsDepth || kind === 'open' || kind === 'comma') continue;
    texts.push(body.slice(kind === 'close' ? from : tokens.from, tokens.to));
  }
  return texts;
}

/** Builds a page that has only these records, with their digests. */
export const pageOfTexts = (
  page: RecordPage,
  texts: readonly string[],
  digests?: readonly string[],
): RecordPage => ({
  ...page,
  body: `[${texts.join(',')}]`,
  itemsKey: null,
  joined: false,
  digests,
});

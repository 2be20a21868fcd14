import { type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { array, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { companyNamed, documentNamed, resources } from '../resources.ts';
import { documents, usageData } from '../schema/utility.ts';
import { type Cte, countWritten, items, type RecordPage, type UpsertPage } from './page.ts';
import { upsertRecords } from './upsert.ts';

/**
 * Writes usage rows. A row is live only if its document is, so the documents that rows name are locked first;
 * documents that were never read are inserted, to be read later. A row that was read before its document was
 * deleted and is written after that is not restored. Neither is a row that was read before a later read
 * listed all usage of the document, unless the row is newer.
 */
export const upsertUsageData: UpsertPage = async (tx, page, closing) => {
  const reported = fromListing(page);
  await lockDocuments(tx, reported);
  return await countWritten(tx, sql`${upsertRows(reported, page)}, ${closing}`);
};

/**
 * The page's rows as a step `reported (r, place, owner, digest, document_id)`. A row that names no document
 * belongs to the document of its listing, or else to the document of the existing row.
 */
function fromListing(page: RecordPage): SQL {
  const listedFor = JSON.stringify(page.documentOf ?? {});
  return sql`${items(page)}, reported as materialized (
    select
      item.*,
      coalesce(
        ${documentNamed},
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

/** Steps that write the rows of the step `reported`. */
function upsertRows(reported: SQL, page: RecordPage, columnsAlone = false): SQL {
  return upsertRecords(resources.usageData, {
    items: reported,
    page,
    columnsAlone,
    instead: new Map<PgColumn, SQL>([
      [usageData.companyId, sql`coalesce(d.company_id, ${companyNamed(sql`r`)}, owner)`],
      [usageData.documentId, sql`document_id`],
    ]),
    from: sql`reported
      left join lateral (
        select company_id, deleted_reason, usage_read_at
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
            and existing.updated < metersync.read_time(r ->> 'updated')
        )
      )`,
  });
}

/** Locks the documents in the order that all writers use, and inserts documents that were never read. */
async function lockDocuments(tx: Executor, reported: SQL): Promise<void> {
  await hot(tx, 'lockDocuments').execute(sql`
    with ${reported}
    insert into ${documents} (id, company_id)
    select distinct on (document_id)
      document_id,
      coalesce(${companyNamed(sql`r`)}, owner)
    from reported
    where document_id is not null
    order by document_id
    -- An update whose condition is false still locks the row.
    on conflict (id) do update set company_id = excluded.company_id where false`);
}

/** A document that was just written, and the usage that its record lists. */
export interface ListedUsage {
  readonly id: string;
  /** Whether the document is new: then it has no other usage. */
  readonly inserted: boolean;
  /** Ids of the usage rows that its record listed before. */
  readonly before: readonly string[] | null;
  /** Usage rows as a JSON array. */
  readonly listed: string;
}

/**
 * Steps that replace the usage of documents by the rows of their own records, which this
 * transaction just wrote: a record that lists usage lists all of it. Rows with equal columns stay:
 * the usage endpoint's record has more fields, and a document's must not replace it at every
 * backfill. `touched` is a query for the ids of rows that the steps write: a statement must not
 * write a row twice.
 */
export function replacingUsage(
  listing: readonly ListedUsage[],
  page: RecordPage,
): { readonly steps: Cte; readonly touched: SQL } {
  const rows = upsertRows(fromRecords(listing, page), page, true);
  const existing = listing.filter(({ inserted }) => !inserted);
  if (existing.length === 0) return { steps: rows, touched: sql`select id from written` };
  const accepted =
    page.usage === 'alone' ? sql`select unnest(${idsOf(existing)}) as id` : acceptedUsage(existing);
  const retired = retiringUsage({
    documents: sql`array(select id from accepted)`,
    seen: sql`array(
          select metersync.canonical_id(r ->> 'id')
          from reported
          where document_id = any(array(select id from accepted))
        )`,
    readAt: page.readAt,
    also: sql`company_id = (
          select d.company_id
          from ${documents} d
          where d.id = document_id
        ),`,
    unless: sql`and id <> all(array(select id from written))`,
  });
  return {
    steps: sql`accepted as materialized (${accepted}
    ), ${rows}, ${retired}`,
    touched: sql`select id from written union all select id from retired`,
  };
}

const idsOf = (documents: readonly ListedUsage[]): SQL =>
  array(
    documents.map(({ id }) => id),
    'uuid',
  );

/**
 * The rows that records list, as a step `reported`: rows of new documents and of `accepted` documents. They
 * are JSON already and need no quoting.
 */
function fromRecords(documents: readonly ListedUsage[], { companyId }: RecordPage): SQL {
  const lists = `[${documents.map(({ listed }) => listed).join(',')}]`;
  const isNew = array(
    documents.map(({ inserted }) => inserted),
    'boolean',
  );
  const areNew = documents.every(({ inserted }) => inserted);
  return sql`reported as materialized (
    select
      row.r,
      row.place,
      ${companyId}::uuid as owner,
      null::bytea as digest,
      listed.document_id
    from rows from (
        unnest(${idsOf(documents)}),
        unnest(${isNew}),
        jsonb_array_elements(${lists}::jsonb)
      ) as listed (document_id, is_new, rows)
      cross join lateral jsonb_array_elements(listed.rows) with ordinality as row (r, place)
    where metersync.uuid_of(row.r ->> 'id') is not null
      ${areNew ? sql`` : sql`and (is_new or document_id = any(array(select id from accepted)))`}
  )`;
}

/**
 * A query for documents that existed before and whose records' usage is accepted. A record may list other
 * rows than the usage endpoint does. It is accepted if the rows that it listed before are the rows of the
 * warehouse, including those that were tombstoned with the document, or if the warehouse never had any.
 */
const acceptedUsage = (existing: readonly ListedUsage[]): SQL => {
  const asked = existing.map(({ id, before }) => ({ id, before }));
  return sql`
    select asked.id
    from jsonb_to_recordset(${JSON.stringify(asked)}::jsonb) as asked (id uuid, before text[])
    where (
        select array_agg(u.id::text order by u.id::text collate "C")
        from ${usageData} u
        where u.document_id = asked.id
          and (
            u.deleted_at is null
            or u.deleted_reason = 'document' and u.id::text = any(asked.before)
          )
      ) is not distinct from (
        select array_agg(distinct id collate "C" order by id collate "C")
        from unnest(asked.before) id
      )
      or not exists (
        select from ${usageData} u
        where u.document_id = asked.id
        offset 0
      )`;
};

/** Locks documents, in order, against others that write their usage. */
export async function holdDocuments(tx: Executor, documentIds: readonly string[]): Promise<void> {
  await hot(tx, 'holdDocuments').execute(sql`
    select ${documents.id}
    from ${documents}
    where ${documents.id} = any(${array(documentIds, 'uuid')})
    order by ${documents.id}
    for no key update`);
}

/**
 * Tombstones usage rows that their document's listing no longer contains, because the usage of a document is
 * one set. `seenIds` has everything that the listings of these documents contained, read from `readAt` on. A
 * document whose usage was read later is not changed. Run it in a transaction that has locked the documents,
 * because the statement must see all rows that others wrote.
 */
export async function retireUsage(
  tx: Executor,
  documentIds: readonly string[],
  seenIds: readonly string[],
  readAt: string,
): Promise<number> {
  const retired = retiringUsage({
    documents: array([...documentIds].sort(), 'uuid'),
    seen: array(printedUuids(seenIds), 'text'),
    readAt,
  });
  const { rows } = await hot(tx, 'retireUsage').execute<{ retired: number }>(sql`
    with ${retired}
    select count(*)::int as retired
    from retired`);
  return rows[0]?.retired ?? 0;
}

/** What is retired, with expressions for the arrays of ids. */
interface Retiring {
  readonly documents: SQL;
  readonly seen: SQL;
  readonly readAt: string;
  /** Further columns to set, and a further condition on the rows. */
  readonly also?: SQL;
  readonly unless?: SQL;
}

/** The same as steps of a statement: `retired (id)`. */
function retiringUsage({ documents: of, seen, readAt, also, unless }: Retiring): Cte {
  // Deleted as of that read: a row that a later read lists lives, whenever this one is written.
  return sql`covered as (
      update ${documents} set usage_read_at = ${readAt}::timestamptz
      where id = any(${of})
        and (usage_read_at is null or usage_read_at <= ${readAt}::timestamptz)
      returning id
    ), retired as (
      update ${usageData} set
        ${also ?? sql``}
        deleted_at = ${readAt}::timestamptz,
        deleted_reason = 'absent'
      where document_id = any(array(select id from covered))
        and deleted_at is null
        and synced_at < ${readAt}::timestamptz
        and not (id::text = any(${seen}))
        ${unless ?? sql``}
      returning id
    )`;
}

import { and, eq, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { array, printedUuids, type RowOf } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { companyNamed, documentNamed, resources } from '../resources.ts';
import { rejectedRecords } from '../schema/metersync.ts';
import { documents, usageData } from '../schema/utility.ts';
import {
  countWritten,
  items,
  type RecordPage,
  type UpsertedRows,
  type UpsertPage,
} from './page.ts';
import { forgetRejected, usageOfDocument } from './rejected-records.ts';
import { upsertRecords } from './upsert.ts';

/**
 * Usage rows. A row is only as alive as its document: the documents named are locked first (those
 * never seen are inserted, to be read later), so that a row read before its document was deleted
 * and written after it is not brought back; nor is one taken, unless it is newer, that was read
 * before a later read saw all of the document's usage.
 */
export const upsertUsageData: UpsertPage = async (tx, page) => {
  const told = toldByListing(page);
  await lockDocuments(tx, told);
  return await upsertRows(tx, told, page);
};

/**
 * The page's rows as a step `told (r, place, owner, digest, document_id)`. The document of a row
 * that names none is the one that it was listed for, or the one that is known.
 */
function toldByListing(page: RecordPage): SQL {
  const listedFor = JSON.stringify(page.documentOf ?? {});
  return sql`${items(page)}, told as materialized (
    select
      item.*,
      coalesce(
        ${documentNamed},
        (${listedFor}::jsonb ->> metersync.canonical_id(r ->> 'id'))::uuid,
        (select document_id from ${usageData} known where known.id = (r ->> 'id')::uuid)
      ) as document_id
    from item
  )`;
}

function upsertRows(
  tx: Executor,
  told: SQL,
  page: RecordPage,
  columnsAlone = false,
): Promise<UpsertedRows> {
  return countWritten(
    tx,
    upsertRecords(resources.usageData, {
      items: told,
      page,
      columnsAlone,
      instead: new Map<PgColumn, SQL>([
        [usageData.companyId, sql`coalesce(d.company_id, ${companyNamed(sql`r`)}, owner)`],
        [usageData.documentId, sql`document_id`],
      ]),
      from: sql`told
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
          select from ${usageData} known
          where known.id = (r ->> 'id')::uuid
            and known.updated < metersync.read_time(r ->> 'updated')
        )
      )`,
    }),
  );
}

/**
 * Locks the documents, one after the other in the order of all; those never seen are inserted for
 * it.
 */
async function lockDocuments(tx: Executor, told: SQL): Promise<void> {
  await tx.execute(sql`
    with ${told}
    insert into ${documents} (id, company_id)
    select distinct on (document_id)
      document_id,
      coalesce(${companyNamed(sql`r`)}, owner)
    from told
    where document_id is not null
    order by document_id
    -- An update that a condition keeps from being made has locked its row.
    on conflict (id) do update set company_id = excluded.company_id where false`);
}

/** A document that was just written, and the usage that its record lists. */
export interface ToldUsage {
  readonly id: string;
  /** Whether the document is new: then no other usage of it is held. */
  readonly inserted: boolean;
  /** Ids of the rows that its record listed before. */
  readonly before: readonly string[] | null;
  /** Rows, each with an id, as a JSON array. */
  readonly told: string;
}

/**
 * Replaces the usage of documents by what their own records tell, which were just written by this
 * transaction: a record that lists its usage lists all of it. Rows that say the same are left as
 * they are: the usage endpoint's record has more, and a document's must not take its place at every
 * backfill.
 */
export async function replaceUsageByRecord(
  tx: Executor,
  page: RecordPage,
  documents: readonly ToldUsage[],
): Promise<void> {
  await upsertRows(tx, toldByRecords(documents, page), page, true);
  const known = documents.filter(({ inserted }) => !inserted);
  if (known.length === 0) return;
  const seen = known.flatMap(({ told }) => JSON.parse(told) as { readonly id: string }[]);
  const idOf = ({ id }: { readonly id: string }): string => id;
  await retireUsage(tx, known.map(idOf), seen.map(idOf), page.readAt);
}

/** The rows that records list, as the same step. What is JSON already needs no quoting. */
const toldByRecords = (documents: readonly ToldUsage[], { companyId }: RecordPage): SQL => {
  const lists = `[${documents.map(({ told }) => told).join(',')}]`;
  const ids = array(
    documents.map(({ id }) => id),
    'uuid',
  );
  return sql`told as materialized (
    select
      row.r,
      row.place,
      ${companyId}::uuid as owner,
      null::bytea as digest,
      listed.document_id
    from rows from (
        unnest(${ids}),
        jsonb_array_elements(${lists}::jsonb)
      ) as listed (document_id, rows)
      cross join lateral jsonb_array_elements(listed.rows) with ordinality as row (r, place)
  )`;
};

/** The usage of a document that was just written is in no row after all. */
export async function usageIsNotRead(
  tx: Executor,
  documentId: string,
  readAt: string,
): Promise<void> {
  await tx
    .update(documents)
    .set({ usageReadAt: null })
    .where(and(eq(documents.id, documentId), eq(documents.usageReadAt, readAt)));
}

/**
 * Of documents whose records list their usage, those that are believed. A record may list other
 * rows than the usage endpoint does (service-facts 2 has versions that differ so): it is believed
 * of a document that is new; or as long as what it listed before is what the warehouse holds, or
 * was refused; or as nothing else tells any usage (`alone`).
 */
export async function believed<T extends ToldUsage>(
  tx: Executor,
  telling: readonly T[],
  alone: boolean,
): Promise<readonly T[]> {
  const known = telling.filter(({ inserted }) => !inserted);
  if (alone || known.length === 0) return telling;
  const asked = known.map(({ id, before }) => ({ id, before }));
  const result = await tx.execute<RowOf<typeof documents.id>>(sql`
    select asked.id
    from jsonb_to_recordset(${JSON.stringify(asked)}::jsonb) as asked (id uuid, before text[])
    where (
        select array_agg(u.id::text order by u.id::text collate "C")
        from ${usageData} u
        where u.document_id = asked.id
          and u.deleted_at is null
      ) is not distinct from (
        select array_agg(distinct id collate "C" order by id collate "C")
        from unnest(asked.before) id
      )
      or exists (
        select from ${rejectedRecords} r
        where r.resource = 'usageData'
          and r.record_id = ${usageOfDocument('')} || asked.id::text
        offset 0
      )`);
  const ids = new Set(result.rows.map(({ id }) => id));
  return telling.filter(({ id, inserted }) => inserted || ids.has(id));
}

const lockingDocuments = (ids: readonly string[]): SQL => sql`
    select ${documents.id}
    from ${documents}
    where ${documents.id} = any(${array(ids, 'uuid')})
    order by ${documents.id}
    for no key update`;

/** Locks documents, in order, against whoever else replaces or brings their usage. */
export async function holdDocuments(tx: Executor, documentIds: readonly string[]): Promise<void> {
  await tx.execute(lockingDocuments(documentIds));
}

/**
 * A document's usage is one set: rows that its own listing no longer shows are gone with the
 * correction that removed them. `seenIds` is all that the listings of these documents showed, read
 * from `readAt` on. A document whose usage was read later is left alone.
 */
export async function retireUsage(
  tx: Executor,
  documentIds: readonly string[],
  seenIds: readonly string[],
  readAt: string,
): Promise<number> {
  const held = await tx.execute<RowOf<typeof documents.id>>(sql`
    update ${documents} set usage_read_at = ${readAt}::timestamptz
    where id in (${lockingDocuments(documentIds)})
      and (usage_read_at is null or usage_read_at <= ${readAt}::timestamptz)
    returning id`);
  const ids = held.rows.map(({ id }) => id);
  if (ids.length === 0) return 0;
  // Gone since that read: a row that a later one shows lives, whenever this one is written.
  const result = await tx.execute(sql`
    update ${usageData} set
      deleted_at = ${readAt}::timestamptz,
      deleted_reason = 'absent'
    where document_id = any(${array(ids, 'uuid')})
      and deleted_at is null
      and synced_at < ${readAt}::timestamptz
      and not (id::text = any(${array(printedUuids(seenIds), 'text')}))`);
  await forgetRejected(tx, { resource: 'usageData', ids: ids.map(usageOfDocument), readAt });
  return result.rowCount ?? 0;
}

import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { requeueMissing } from '../records/missing.ts';
import { type Cte, type RecordPage, replacedIn } from '../records/page.ts';
import { usageSource } from '../records/sources.ts';
import { upsertRecords } from '../records/upsert.ts';
import { retiringUsage } from '../records/usage-data.ts';
import { resources } from '../resources.ts';
import { documents, usageData } from '../schema/utility.ts';
import type { WrittenDocument } from './write-records.ts';

/**
 * Updates what depends on documents that a page wrote. The usage that their records list replaces
 * their usage in the warehouse. Events of changed documents that count as missing become pending again. It runs for each page, and its snapshot begins after the documents were locked.
 * Measured: 0.09 ms and 8 blocks for one document; 2.7 ms and 350 blocks for a page.
 */
export async function writeUsageOfDocuments(
  tx: Executor,
  page: RecordPage,
  written: readonly WrittenDocument[],
): Promise<void> {
  const changed = written.filter(({ inserted }) => !inserted).map(({ id }) => id);
  const listing = written.filter(({ listsUsage }) => listsUsage);
  if (changed.length + listing.length === 0) return;
  const usage = listing.length === 0 ? sql`` : sql`${replacingUsage(listing, page)}, `;
  await hot(tx, 'writeUsageOfDocuments').execute(sql`
    with ${usage}${requeueMissing('documents', changed)}
    select`);
}

/**
 * Steps that replace the usage of documents with the rows in the documents' records, which this
 * transaction just wrote. A record that lists usage lists all of it. Rows with equal columns stay:
 * the record of the usage endpoint has more fields, and the row in a document must not replace it
 * at every backfill.
 */
function replacingUsage(listing: readonly WrittenDocument[], page: RecordPage): Cte {
  const source = { ...usageSource(usageOfRecords(listing, page), page), columnsAlone: true };
  const rows = upsertRecords(resources.usageData, source);
  const existing = listing.filter(({ inserted }) => !inserted);
  if (existing.length === 0) return rows;
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
    unless: sql`and id <> all(array(select id from written))`,
  });
  return sql`accepted as materialized (${accepted}
    ), ${rows}, ${retired}`;
}

const idsOf = (documents: readonly WrittenDocument[]): SQL =>
  array(
    documents.map(({ id }) => id),
    'uuid',
  );

/**
 * Usage rows of new and `accepted` documents, as a step `reported`. The rows of the documents have
 * them, so Postgres does not parse them again.
 */
function usageOfRecords(
  written: readonly WrittenDocument[],
  { companyId, replaced }: RecordPage,
): SQL {
  const isNew = array(
    written.map(({ inserted }) => inserted),
    'boolean',
  );
  const areNew = written.every(({ inserted }) => inserted);
  const texts = array(
    written.map((document) => document.replaced ?? null),
    'text',
  );
  return sql`reported as materialized (
    select
      row.r,
      row.place,
      ${companyId}::uuid as owner,
      null::bytea as digest,
      ${replaced ? sql`${replacedIn('usageData', sql`texts::jsonb`, sql`row.place - 1`)} as replaced,` : sql``}
      listed.document_id
    from rows from (
        unnest(${idsOf(written)}),
        unnest(${isNew})
        ${replaced ? sql`, unnest(${texts})` : sql``}
      ) as listed (document_id, is_new${replaced ? sql`, texts` : sql``})
      cross join lateral (
        select raw -> 'usageData' as rows
        from ${documents}
        where id = listed.document_id
        offset 0
      ) record
      cross join lateral jsonb_array_elements(record.rows) with ordinality as row (r, place)
    where metersync.uuid_of(row.r ->> 'id') is not null
      ${areNew ? sql`` : sql`and (is_new or document_id = any(array(select id from accepted)))`}
  )`;
}

/**
 * A query for the existing documents whose own record decides which usage they have. The usage
 * endpoint may list other rows, so the record decides only if the warehouse never had usage of the
 * document, or has exactly the rows that the record listed before. Rows that were tombstoned together
 * with the document count, too.
 */
function acceptedUsage(existing: readonly WrittenDocument[]): SQL {
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
}

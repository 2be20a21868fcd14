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
 * transaction just wrote. A record that lists usage lists all of it. A document that loses a row to
 * another one loses its digest, too: otherwise an equal record of it, which has the row again, would
 * count as unchanged.
 */
function replacingUsage(listing: readonly WrittenDocument[], page: RecordPage): Cte {
  const source = { ...usageSource(usageOfRecords(listing, page), page), ofDocuments: true };
  const lost = sql`lost as (
      update ${documents} set digest = null
      where id = any(array(
          select existing.document_id
          from reported
            cross join lateral (
              select document_id
              from ${usageData}
              where id = (reported.r ->> 'id')::uuid
                and document_id <> reported.document_id
              offset 0
            ) existing
        ))
    )`;
  const rows = upsertRecords(resources.usageData, source);
  const existing = listing.filter(({ inserted }) => !inserted);
  if (existing.length === 0) return sql`${rows}, ${lost}`;
  const retired = retiringUsage({
    documents: idsOf(existing),
    seen: sql`array(
          select metersync.canonical_id(r ->> 'id')
          from reported
        )`,
    readAt: page.readAt,
    unless: sql`and id <> all(array(select id from written))`,
  });
  return sql`${rows}, ${lost}, ${retired}`;
}

const idsOf = (documents: readonly WrittenDocument[]): SQL =>
  array(
    documents.map(({ id }) => id),
    'uuid',
  );

/**
 * The usage rows of documents, as a step `reported`. The rows of the documents have them, so Postgres does not
 * parse them again.
 */
function usageOfRecords(
  written: readonly WrittenDocument[],
  { companyId, replaced }: RecordPage,
): SQL {
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
        unnest(${idsOf(written)})
        ${replaced ? sql`, unnest(${texts})` : sql``}
      ) as listed (document_id${replaced ? sql`, texts` : sql``})
      cross join lateral (
        select raw -> 'usageData' as rows
        from ${documents}
        where id = listed.document_id
        offset 0
      ) record
      cross join lateral jsonb_array_elements(record.rows) with ordinality as row (r, place)
    where metersync.uuid_of(row.r ->> 'id') is not null
  )`;
}

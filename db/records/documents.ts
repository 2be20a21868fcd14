import { type SQL, sql } from 'drizzle-orm';
import { unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { resources } from '../resources.ts';
import { documents, usageData } from '../schema/utility.ts';
import { refreshRequeued, requeueMissing } from './missing.ts';
import { movingUsage } from './owner.ts';
import {
  countRows,
  countWritten,
  items,
  type RecordPage,
  type UpsertPage,
  type WrittenRow,
} from './page.ts';
import { upsertRecords } from './upsert.ts';
import { replacingUsage } from './usage-data.ts';

/** A written document, and the usage that its record lists now and listed before. */
interface Written extends WrittenRow, Revived {
  /** Whether its record was read before. Otherwise only the header of an event is known. */
  readonly read: boolean;
  /** Ids of usage rows. */
  readonly before: readonly string[] | null;
  /** Usage rows as JSON text; null if the record lists none, or a row has no id. */
  readonly listed: string | null;
}

type WithUsage = Written & { readonly listed: string };

const listsUsage = (document: Written): document is WithUsage => document.listed !== null;

/**
 * Writes documents, and the usage that their records list. A corrected bill corrects its usage in
 * the same transaction; its line items stand in `raw`.
 */
export const upsertDocuments: UpsertPage = async (tx, page, closing) => {
  const { usage = 'corrected' } = page;
  // A new document has no usage but what its record lists, so this read covers all of it.
  const ofNew = usage === 'all' || usage === 'alone';
  const readAt = ofNew
    ? sql`case when ${hasUsage(sql`r`)} then ${page.readAt}::timestamptz end`
    : sql`null::timestamptz`;
  const begins = new Map([[documents.usageReadAt, readAt]]);
  // This last part sees documents as they were before, because all parts of a statement share one snapshot.
  const { rows } = await hot(tx, 'upsertDocuments').execute<Written>(sql`
    with ${upsertRecords(resources.documents, { items: items(page), page, begins })}, ${closing}
    select
      written.id,
      written.inserted,
      written.own,
      clock_timestamp()::text as now,
      earlier.raw is not null as read,
      earlier.deleted_at::text as tombstoned,
      (
        select array_agg(distinct metersync.uuid_of(row ->> 'id')::text)
        from jsonb_array_elements(metersync.elements(earlier.raw -> 'usageData')) row
        where metersync.uuid_of(row ->> 'id') is not null
      ) as before,
      case
        when ${ofNew ? sql`true` : sql`earlier.raw is not null`} and ${hasUsage(sql`incoming.raw`)}
        then (incoming.raw -> 'usageData')::text
      end as listed
    from written
      join incoming on incoming.id = written.id
      left join lateral (
        select raw, deleted_at
        from ${documents}
        where id = written.id
          and not written.inserted
        offset 0
      ) earlier on true`);
  const changed = rows.filter(({ inserted }) => !inserted);
  await reviveUsage(tx, changed);
  const listing = usage === 'none' ? [] : rows.filter(listsUsage);
  if (listing.length + changed.length > 0) await follow(tx, page, changed, listing);
  return countRows(rows);
};

/** A document, and when it had been tombstoned; null if it lived. */
interface Revived {
  readonly id: string;
  readonly tombstoned: string | null;
}

/** Revives the usage that was tombstoned with documents which a read revived. */
export async function reviveUsage(tx: Executor, documents: readonly Revived[]): Promise<void> {
  const revived = documents.filter(({ tombstoned }) => tombstoned !== null);
  if (revived.length === 0) return;
  const of = unnested('revived', revived, [
    ['id', 'uuid', ({ id }) => id],
    ['deleted_at', 'timestamptz', ({ tombstoned }) => tombstoned],
  ]);
  await hot(tx, 'reviveUsageOfDocuments').execute(sql`
    update ${usageData} set
      deleted_at = null,
      deleted_reason = null
    where id = any(array(
      select theirs.id
      from ${of}
        cross join lateral (
          select id
          from ${usageData}
          where document_id = revived.id
            and deleted_reason = 'document'
            and deleted_at = revived.deleted_at
          offset 0
        ) theirs
      order by theirs.id
    ))`);
}

/** Whether a record lists its usage, each row with an id. Rows whose id is not a UUID are left out. */
const hasUsage = (record: SQL): SQL => sql`jsonb_typeof(${record} -> 'usageData') = 'array'
          and not ${record} @? '$.usageData[*]
            ? (@.type() != "object" || !exists(@.id) || @.id == null)'`;

/**
 * Runs in one statement, whose snapshot begins after the documents were locked. The usage that records list
 * replaces the documents' usage, other usage of changed documents moves to their owners, and usage waits
 * again whose missing events the documents answer.
 */
async function follow(
  tx: Executor,
  page: RecordPage,
  changed: readonly Written[],
  listing: readonly WithUsage[],
): Promise<void> {
  const usage = listing.length === 0 ? undefined : replacingUsage(listing, page);
  if (changed.length === 0) {
    if (usage !== undefined) await countWritten(tx, usage.steps);
    return;
  }
  const others = usage && sql`and u.id <> all(array(${usage.touched}))`;
  const { rows } = await hot(tx, 'requeueDocuments').execute<{ record_id: string }>(sql`
    with ${usage ? sql`${usage.steps}, ` : sql``}moved as (${movingUsage(changed, others)}
    ), ${requeueMissing('documents', changed)}
    select record_id
    from requeued`);
  const requeued = rows.map(({ record_id }) => record_id);
  await refreshRequeued(tx, 'documents', requeued);
}

import { type SQL, sql } from 'drizzle-orm';
import type { Transaction } from '../connect.ts';
import { sqlMessage } from '../failures.ts';
import { resources } from '../resources.ts';
import { documents } from '../schema/utility.ts';
import { splitOnRefusal } from '../split-on-refusal.ts';
import { refreshRequeued, requeueMissing } from './missing.ts';
import { movingUsage } from './owner.ts';
import { countRows, items, type RecordPage, type UpsertPage, type WrittenRow } from './page.ts';
import { rejectRecord, usageOfDocument } from './rejected-records.ts';
import { upsertRecords } from './upsert.ts';
import { acceptedUsage, replaceUsageByRecord, usageIsNotRead } from './usage-data.ts';

/** A written document, and the usage that its record lists now and listed before. */
interface Written extends WrittenRow {
  readonly id: string;
  /** Whether its record was read before, as opposed to an event's header alone. */
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
  // The last part sees documents as they were before: all parts of a statement share one snapshot.
  const { rows } = await tx.execute<Written>(sql`
    with ${upsertRecords(resources.documents, { items: items(page), page, begins })}, ${closing}
    select
      written.id,
      written.inserted,
      written.own,
      clock_timestamp()::text as now,
      earlier.raw is not null as read,
      (
        select array_agg(metersync.canonical_id(row ->> 'id'))
        from jsonb_array_elements(metersync.elements(earlier.raw -> 'usageData')) row
      ) as before,
      case
        when ${ofNew ? sql`true` : sql`earlier.raw is not null`} and ${hasUsage(sql`incoming.raw`)}
        then (incoming.raw -> 'usageData')::text
      end as listed
    from written
      join incoming on incoming.id = written.id
      left join lateral (
        select raw from ${documents} where id = written.id and not written.inserted offset 0
      ) earlier on true`);
  const changed = rows.filter(({ inserted }) => !inserted);
  const listing = usage === 'none' ? [] : rows.filter(listsUsage);
  const isAccepted = ({ inserted }: Written): boolean => inserted || usage === 'alone';
  const asked = listing.filter((document) => !isAccepted(document));
  const accepted = changed.length > 0 ? await followChanges(tx, changed, asked) : new Set();
  const ofAccepted = listing.filter((each) => isAccepted(each) || accepted.has(each.id));
  if (ofAccepted.length > 0) await writeUsage(tx, page, ofAccepted);
  return countRows(rows);
};

/**
 * Does what follows from changed documents, in one statement: their usage moves to their owners, and
 * those wait again whose missing events they answer. Of documents whose records list usage, it
 * returns those whose usage is accepted.
 */
async function followChanges(
  tx: Transaction,
  changed: readonly Written[],
  listing: readonly WithUsage[],
): Promise<ReadonlySet<string>> {
  const { rows } = await tx.execute<{ accepted: string[]; requeued: string[] }>(sql`
    with moved as (${movingUsage(changed)}
    ), ${requeueMissing('documents', changed)}
    select
      array(select record_id from requeued) as requeued,
      array(${acceptedUsage(listing)}
      ) as accepted`);
  const { requeued = [], accepted = [] } = rows[0] ?? {};
  await refreshRequeued(tx, 'documents', requeued);
  return new Set(accepted);
}

/** Whether a record lists its usage, each row with an id. */
const hasUsage = (record: SQL): SQL => sql`jsonb_typeof(${record} -> 'usageData') = 'array'
          and not ${record} @? '$.usageData[*]
            ? (@.type() != "object" || !exists(@.id) || @.id == null)'`;

/**
 * Writes usage from records. If Postgres refuses a row, only its document's usage is not written.
 */
async function writeUsage(
  tx: Transaction,
  page: RecordPage,
  written: readonly WithUsage[],
): Promise<void> {
  const { readAt } = page;
  await splitOnRefusal(
    written,
    (part) => tx.transaction((inner) => replaceUsageByRecord(inner, page, part)),
    async ({ id, listed }, error) => {
      await usageIsNotRead(tx, id, readAt);
      await rejectRecord(tx, {
        resource: 'usageData',
        companyId: page.companyId,
        id: usageOfDocument(id),
        text: listed,
        error: sqlMessage(error),
      });
    },
  );
}

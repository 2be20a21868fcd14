import { type SQL, sql } from 'drizzle-orm';
import type { Transaction } from '../connect.ts';
import { sqlMessage } from '../failures.ts';
import { halving } from '../halving.ts';
import { resources } from '../resources.ts';
import { documents } from '../schema/utility.ts';
import { requeueMissing } from './missing.ts';
import { moveUsage } from './owner.ts';
import { countRows, items, type RecordPage, type UpsertPage, type WrittenRow } from './page.ts';
import { rejectRecord, usageOfDocument } from './rejected-records.ts';
import { upsertRecords } from './upsert.ts';
import { believed, replaceUsageByRecord, usageIsNotRead } from './usage-data.ts';

/**
 * A document that was written, and the usage that its record lists, and listed before, if it did.
 */
interface Written extends WrittenRow {
  readonly id: string;
  /** Whether its record was read before, and not only an event's header. */
  readonly read: boolean;
  /** Ids of rows. */
  readonly before: readonly string[] | null;
  /** Rows as they are; null where it tells none, or one of them has no id. */
  readonly told: string | null;
}

/**
 * Documents, and the usage that their records tell: a corrected bill corrects its usage in the same
 * transaction; its line items stand in `raw`.
 */
export const upsertDocuments: UpsertPage = async (tx, page) => {
  const { usage = 'corrected' } = page;
  // A document that is new has no usage but what its record tells, so that is all of it as of this
  // read.
  const ofNew = usage === 'all' || usage === 'alone';
  const readAt = ofNew
    ? sql`case when ${tellsUsage(sql`r`)} then ${page.readAt}::timestamptz end`
    : sql`null::timestamptz`;
  const begins = new Map([[documents.usageReadAt, readAt]]);
  // The last part sees documents as they were before: all parts of a statement share one snapshot.
  const { rows } = await tx.execute<Written>(sql`
    with ${upsertRecords(resources.documents, { items: items(page), page, begins })}
    select
      written.id,
      written.inserted,
      written.own,
      known.raw is not null as read,
      (
        select array_agg(metersync.canonical_id(row ->> 'id'))
        from jsonb_array_elements(metersync.elements(known.raw -> 'usageData')) row
      ) as before,
      case
        when ${ofNew ? sql`true` : sql`known.raw is not null`} and ${tellsUsage(sql`incoming.raw`)}
        then (incoming.raw -> 'usageData')::text
      end as told
    from written
      join incoming on incoming.id = written.id
      left join lateral (
        select raw from ${documents} where id = written.id and not written.inserted offset 0
      ) known on true`);
  const changed = rows.filter(({ inserted }) => !inserted);
  await moveUsage(tx, changed);
  if (usage !== 'none') await writeUsage(tx, page, rows);
  if (changed.length > 0) await requeueMissing(tx, 'documents', changed);
  return countRows(rows);
};

/** Whether a record lists its usage, and each row of it by its id. */
const tellsUsage = (record: SQL): SQL => sql`jsonb_typeof(${record} -> 'usageData') = 'array'
          and not ${record} @? '$.usageData[*]
            ? (@.type() != "object" || !exists(@.id) || @.id == null)'`;

/** A usage row that Postgres refuses costs its document's usage only: the document is written. */
async function writeUsage(
  tx: Transaction,
  page: RecordPage,
  written: readonly Written[],
): Promise<void> {
  const telling = written.flatMap(({ told, ...rest }) =>
    told === null ? [] : [{ ...rest, told }],
  );
  if (telling.length === 0) return;
  const { readAt } = page;
  await halving(
    await believed(tx, telling, page.usage === 'alone'),
    (some) => tx.transaction((part) => replaceUsageByRecord(part, page, some)),
    async ({ id, told }, error) => {
      await usageIsNotRead(tx, id, readAt);
      await rejectRecord(tx, {
        resource: 'usageData',
        companyId: page.companyId,
        id: usageOfDocument(id),
        text: told,
        error: sqlMessage(error),
      });
    },
  );
}

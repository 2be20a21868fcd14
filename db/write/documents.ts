import { sql } from 'drizzle-orm';
import type { Transaction } from '../connect.ts';
import { sqlMessage } from '../failures.ts';
import { halving } from '../halving.ts';
import { decoded, inOrder } from './decoded.ts';
import { lookAgain } from './missing.ts';
import { confirmedBy, items, newerRead, type RecordPage, setColumns, type UpsertPage } from './page.ts';
import { rejectRecord, usageOfDocument } from './rejected-records.ts';
import { documentsThatTellUsage, replaceUsageByRecord } from './usage-data.ts';

const columns = ['company_id', 'site_id', 'created', 'updated', 'raw_updated'] as const;
const kept = [...columns, 'digest'];

/** A document that was written, and the usage that its record listed before, if there was one. */
interface Written extends Record<string, unknown> {
  readonly id: string;
  readonly inserted: boolean;
  /** Whether its record was read before, and not only an event's header. */
  readonly read: boolean;
  readonly before: readonly string[] | null;
}

/**
 * Documents, and the usage that their records tell: a corrected bill corrects its usage in the same transaction; its
 * line items stand in `raw`.
 */
export const upsertDocuments: UpsertPage = async (tx, page) => {
  // The last part sees documents as they were before: all parts of a statement share one snapshot.
  const { rows } = await tx.execute<Written>(sql`with ${items(page)}, written as (
    insert into utility.documents as d (id, ${sql.raw(kept.join(', '))}, raw, api_version, synced_at)
    select distinct on (id) (r ->> 'id')::uuid as id, ${inOrder(columns, decoded.documents(page, sql`known`))}, digest,
      r, ${page.apiVersion}, ${page.readAt}::timestamptz
    from item left join lateral (
      select site_id from utility.documents where id = (r ->> 'id')::uuid offset 0
    ) known on true
    order by id, metersync.read_time(r ->> 'updated') desc nulls last, place desc
    on conflict (id) do update set ${setColumns(kept)}
    where ${newerRead('d', kept, undefined, confirmedBy(page, 'document', 'd'))}
    returning id, (xmax = 0) as inserted
    )
    select w.id, w.inserted, known.raw is not null as read, (
        select array_agg(lower(row ->> 'id'))
        from jsonb_array_elements(metersync.elements(known.raw -> 'usageData')) row
      ) as before
    from written w left join lateral (
      select raw from utility.documents where id = w.id and not w.inserted offset 0
    ) known on true`);
  const changed = rows.filter(({ inserted }) => !inserted);
  const { usage = 'corrected' } = page;
  const telling = usage === 'none' ? [] : usage === 'corrected' ? changed.filter(({ read }) => read) : rows;
  if (telling.length > 0) await writeUsage(tx, page, telling);
  if (changed.length > 0) await lookAgain(tx, 'document', changed);
  return { inserted: rows.length - changed.length, changed: changed.length };
};

/** A usage row that Postgres refuses costs its document's usage only: the document is written. */
async function writeUsage(tx: Transaction, page: RecordPage, written: readonly Written[]): Promise<void> {
  await halving(
    await documentsThatTellUsage(tx, written, page.usage === 'alone'),
    (ids) => tx.transaction((part) => replaceUsageByRecord(part, page, ids)),
    async (id, error) => {
      const found = await tx.execute<{ text: string }>(
        sql`select (raw -> 'usageData')::text as text from utility.documents where id = ${id}::uuid`,
      );
      await rejectRecord(tx, {
        resource: 'usageData',
        companyId: page.companyId,
        id: usageOfDocument(id),
        text: found.rows[0]?.text ?? '',
        error: sqlMessage(error),
      });
    },
  );
}

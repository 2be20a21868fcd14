import { type SQL, sql } from 'drizzle-orm';
import { array, printedUuids } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import {
  countWritten,
  items,
  newerRead,
  type RecordPage,
  rawOf,
  setColumns,
  type UpsertPage,
} from './page.ts';

const columns = [
  'company_id',
  'document_id',
  'meter_id',
  'start_date',
  'end_date',
  'usage',
  'usage_units',
  'created',
  'updated',
] as const;

const documentOf: SQL = sql`coalesce(metersync.id_of(r -> 'document'), r ->> 'documentId')::uuid`;

/**
 * Usage rows. A row is only as alive as its document: the documents named are locked first (those never seen are
 * inserted, to be read later), so that a row read before its document was deleted and written after it is not
 * brought back; nor is one that was read before, and is not among, all that a later read of the document's usage saw.
 */
export const upsertUsageData: UpsertPage = async (tx, page) => {
  await lockDocuments(tx, page);
  return countWritten(
    tx,
    sql`with ${items(page)}
    insert into utility.usage_data as u (id, ${sql.raw(columns.join(', '))}, raw, api_version, synced_at)
    select distinct on (id) (r ->> 'id')::uuid as id,
      coalesce(${page.companyId}::uuid, metersync.id_of(r #> '{document,company}')::uuid, d.company_id),
      ${documentOf}, coalesce(metersync.id_of(r -> 'meter'), r ->> 'meterId'),
      (r ->> 'startDate')::date, (r ->> 'endDate')::date, (r ->> 'usage')::numeric, r ->> 'usageUnits',
      metersync.read_time(r ->> 'created'), metersync.read_time(r ->> 'updated'),
      ${rawOf}, ${page.apiVersion}, ${page.readAt}::timestamptz
    from item left join utility.documents d on d.id = ${documentOf}
    where d.deleted_reason is distinct from 'event'
      and (d.usage_read_at is null or d.usage_read_at <= ${page.readAt}::timestamptz
        or exists (select from utility.usage_data known where known.id = (r ->> 'id')::uuid))
    order by id, metersync.read_time(r ->> 'updated') desc nulls last, place desc
    on conflict (id) do update set ${setColumns(columns)}
    where ${newerRead('u', columns)}
    returning (xmax = 0) as inserted`,
  );
};

async function lockDocuments(tx: Executor, page: RecordPage): Promise<void> {
  await tx.execute(sql`with ${items(page)}
    insert into utility.documents (id, company_id)
    select distinct ${documentOf} as id, ${page.companyId}::uuid
    from item left join utility.documents d on d.id = ${documentOf}
    where ${documentOf} is not null and d.id is null
    order by id
    on conflict (id) do nothing`);
  await tx.execute(sql`with ${items(page)}
    select d.id from utility.documents d
    where d.id in (select ${documentOf} from item)
    order by d.id for share`);
}

/**
 * A document's usage is one set: rows that its own listing no longer shows are gone with the correction that
 * removed them. `seenIds` is all that the listings of these documents showed, read from `readAt` on.
 */
export async function retireUsage(
  tx: Executor,
  documentIds: readonly string[],
  seenIds: readonly string[],
  readAt: string,
): Promise<number> {
  const ids = array(documentIds, 'uuid');
  await tx.execute(sql`
    update utility.documents set usage_read_at = ${readAt}::timestamptz
    where id in (select id from utility.documents where id = any(${ids}) order by id for no key update)
      and (usage_read_at is null or usage_read_at < ${readAt}::timestamptz)`);
  const result = await tx.execute(sql`
    update utility.usage_data set deleted_at = clock_timestamp(), deleted_reason = 'absent'
    where document_id = any(${ids}) and deleted_at is null
      and synced_at < ${readAt}::timestamptz and not (id::text = any(${array(printedUuids(seenIds), 'text')}))`);
  return result.rowCount ?? 0;
}

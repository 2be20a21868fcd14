import { sql } from 'drizzle-orm';
import type { Transaction } from '../connect.ts';
import { sqlMessage } from '../failures.ts';
import { halving } from '../halving.ts';
import { decoded, inOrder } from './decoded.ts';
import { lookAgain } from './missing.ts';
import { confirmedBy, items, newerRead, type RecordPage, setColumns, type UpsertPage } from './page.ts';
import { rejectRecord, usageOfDocument } from './rejected-records.ts';
import { believed, replaceUsageByRecord, usageIsNotRead } from './usage-data.ts';

const columns = ['company_id', 'site_id', 'created', 'updated', 'raw_updated'] as const;
const kept = [...columns, 'digest'];

/** A document that was written, and the usage that its record lists, and listed before, if it did. */
interface Written extends Record<string, unknown> {
  readonly id: string;
  readonly inserted: boolean;
  /** Whether its record was read before, and not only an event's header. */
  readonly read: boolean;
  /** Ids of rows. */
  readonly before: readonly string[] | null;
  /** Rows as they are; null where it tells none, or one of them has no id. */
  readonly told: string | null;
}

/**
 * Documents, and the usage that their records tell: a corrected bill corrects its usage in the same transaction; its
 * line items stand in `raw`.
 */
export const upsertDocuments: UpsertPage = async (tx, page) => {
  const { usage = 'corrected' } = page;
  // A document that is new has no usage but what its record tells, so that is all of it as of this read.
  const ofNew = usage === 'all' || usage === 'alone';
  // The last part sees documents as they were before: all parts of a statement share one snapshot.
  const { rows } = await tx.execute<Written>(sql`
    with ${items(page)}, chosen as materialized (
      select distinct on (id) (r ->> 'id')::uuid as id, r, digest
      from item
      order by id, metersync.read_time(r ->> 'updated') desc nulls last, place desc
    ), written as (
      insert into utility.documents as d (
        id, ${sql.raw(kept.join(', '))}, usage_read_at, raw, api_version, synced_at
      )
      select
        chosen.id,
        ${inOrder(columns, decoded.documents(page, sql`known`))},
        digest,
        ${ofNew ? sql`case when ${tellsUsage} then ${page.readAt}::timestamptz end` : sql`null::timestamptz`},
        r,
        ${page.apiVersion},
        ${page.readAt}::timestamptz
      from chosen
        left join lateral (
          select site_id from utility.documents where id = chosen.id offset 0
        ) known on true
      order by chosen.id
      on conflict (id) do update set ${setColumns(kept)}
      where ${newerRead('d', kept, undefined, confirmedBy(page, 'document', 'd'))}
      returning id, (xmax = 0) as inserted
    )
    select
      w.id,
      w.inserted,
      known.raw is not null as read,
      (
        select array_agg(lower(row ->> 'id'))
        from jsonb_array_elements(metersync.elements(known.raw -> 'usageData')) row
      ) as before,
      case when ${ofNew ? sql`true` : sql`known.raw is not null`} and ${tellsUsage}
        then (chosen.r -> 'usageData')::text end as told
    from written w
      join chosen on chosen.id = w.id
      left join lateral (
        select raw from utility.documents where id = w.id and not w.inserted offset 0
      ) known on true`);
  const changed = rows.filter(({ inserted }) => !inserted);
  if (usage !== 'none') await writeUsage(tx, page, rows);
  if (changed.length > 0) await lookAgain(tx, 'document', changed);
  return { inserted: rows.length - changed.length, changed: changed.length };
};

/** Of a record `chosen.r`: it lists its usage, and each row of it by its id. */
const tellsUsage = sql`jsonb_typeof(chosen.r -> 'usageData') = 'array'
  and not chosen.r @? '$.usageData[*] ? (@.type() != "object" || !exists(@.id) || @.id == null)'`;

/** A usage row that Postgres refuses costs its document's usage only: the document is written. */
async function writeUsage(tx: Transaction, page: RecordPage, written: readonly Written[]): Promise<void> {
  const telling = written.flatMap(({ told, ...rest }) => (told === null ? [] : [{ ...rest, told }]));
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

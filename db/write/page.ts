import { type SQL, sql } from 'drizzle-orm';
import { array } from '../arrays.ts';
import type { Executor, Transaction } from '../connect.ts';
import { isStale } from '../stale.ts';

/**
 * A page of records on its way into a table: the body as the service client read it, less its secrets, which only Postgres
 * reads, so that no number passes through a float.
 */
export interface RecordPage {
  readonly body: string;
  /** Key of the items in the envelope; null when the body is a bare array, '' when it is one record. */
  readonly itemsKey: string | null;
  /** Set when `body` is an array of such bodies, each with its own items. */
  readonly joined?: boolean;
  /** Company in whose listing the page stands, where it stands in one. */
  readonly companyId: string | null;
  readonly apiVersion: string;
  /** When the read began, by the warehouse's clock. */
  readonly readAt: string;
  /**
   * Of documents: whose usage, as their records tell it, is written with them. `corrected` (the default) are those that
   * were known and changed; `alone` those of all, where nothing else tells any usage; `none` where the usage endpoint's own
   * rows are written in the same transaction.
   */
  readonly usage?: 'all' | 'corrected' | 'alone' | 'none';
  /**
   * Whether the records are read because events told of them: then one that is as the warehouse has it counts as read now,
   * so that a page of before that is written after, and shows another state of the same `updated`, does not replace it.
   */
  readonly confirms?: boolean;
  /** Of companies: whether those are left out that have no row; a backfill's list brings them, which reads them next. */
  readonly knownOnly?: boolean | undefined;
  /** Of usage data: the document of each row, by the row's id, where the row itself does not name it. */
  readonly documentOf?: Readonly<Record<string, string>>;
  /** Digests of the items in hex, in their order: see unchanged.ts. */
  readonly digests?: readonly string[] | undefined;
}

export interface WrittenRows {
  readonly inserted: number;
  readonly changed: number;
}

export type UpsertPage = (tx: Transaction, page: RecordPage) => Promise<WrittenRows>;

/** The page's records as a table `item(r, place, digest)`. */
export function items(page: RecordPage): SQL {
  const digests = array(page.digests ?? [], 'text');
  return sql`item as materialized (
    select r, place, decode(digest, 'hex') as digest
    from rows from (jsonb_array_elements(${itemList(page)}), unnest(${digests})) with ordinality as t (r, digest, place))`;
}

/** The items of a page as one array. */
function itemList(page: Pick<RecordPage, 'body' | 'itemsKey' | 'joined'>): SQL {
  const body = sql`${page.body}::jsonb`;
  if (page.itemsKey === '') return page.joined ? body : sql`jsonb_build_array(${body})`;
  const of = (from: SQL): SQL => (page.itemsKey === null ? from : sql`${from} -> ${page.itemsKey}::text`);
  if (!page.joined) return of(body);
  return sql`(select coalesce(jsonb_agg(item), '[]') from jsonb_array_elements(${body}) one,
    jsonb_array_elements(${of(sql`one`)}) item)`;
}

/** Counts what an upsert that ends with `returning (xmax = 0) as inserted` did. */
export async function countWritten(tx: Executor, upsert: SQL): Promise<WrittenRows> {
  const result = await tx.execute<{ inserted: boolean }>(upsert);
  const inserted = result.rows.filter((row) => row.inserted).length;
  return { inserted, changed: result.rows.length - inserted };
}

/**
 * The guard of a record with `updated`, for `where` of its upsert. In words: a newer state wins; at the same
 * `updated` the read that began later wins, as it does when the service tells no `updated`; an event's tombstone
 * yields only to a newer state, an inferred one to any later read; a row identical in what is `compared` is not
 * touched unless it is `confirmed`, or its record is spelled in another way, whose digest the next read will bring.
 */
export function newerRead(
  table: string,
  columns: readonly string[],
  compared: readonly string[] = [...columns.filter((column) => column !== 'digest'), 'raw', 'api_version'],
  confirmed: SQL = sql`false`,
): SQL {
  const t = (column: string) => `${table}.${column}`;
  const row = (source: string) => `(${compared.map((c) => `${source}.${c}`).join(', ')})`;
  const newer = sql.raw(`(
    ${t('updated')} is null or excluded.updated > ${t('updated')} or ${t('deleted_reason')} in ('absent', 'not_found')
    or (${t('updated')} = excluded.updated or excluded.updated is null)
      and (${t('raw')} is null or ${t('synced_at')} is null or excluded.synced_at >= ${t('synced_at')}
        ${columns.includes('raw_updated') ? `or ${t('raw_updated')} is distinct from ${t('updated')}` : ''})
  ) and (
    ${t('deleted_at')} is null
    or case ${t('deleted_reason')} when 'event' then excluded.updated > ${t('updated')}
      else excluded.synced_at > ${t('deleted_at')} end
  )`);
  const respelled = columns.includes('digest')
    ? `or excluded.digest is not null and ${t('digest')} is distinct from excluded.digest`
    : '';
  const differs = sql.raw(
    `${t('deleted_at')} is not null or ${row(table)} is distinct from ${row('excluded')} ${respelled}`,
  );
  return sql`${newer} and (${differs} or ${confirmed})`;
}

/** For the guard above: events wait for the record, and the page is read for them. */
export const confirmedBy = (page: RecordPage, kind: 'connection' | 'document', table: string): SQL =>
  page.confirms ? isStale(kind, sql`${sql.raw(table)}.id::text`) : sql`false`;

/** The same for a record without `updated`: the read that began later wins. */
export function laterRead(table: string, columns: readonly string[]): SQL {
  const row = (source: string) =>
    `(${[...columns, 'raw', 'api_version'].map((c) => `${source}.${c}`).join(', ')})`;
  return sql.raw(`(${table}.synced_at is null or excluded.synced_at >= ${table}.synced_at)
    and (${table}.deleted_at is null or excluded.synced_at > ${table}.deleted_at)
    and (${table}.deleted_at is not null or ${row(table)} is distinct from ${row('excluded')})`);
}

/** `set` of an upsert: every given column, and the columns that each table carries; a row that is seen lives. */
export function setColumns(columns: readonly string[]): SQL {
  const all = [...columns, 'raw', 'api_version', 'synced_at'].map((c) => `${c} = excluded.${c}`);
  return sql.raw([...all, 'deleted_at = null', 'deleted_reason = null'].join(', '));
}

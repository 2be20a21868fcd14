import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor, Transaction } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';

/**
 * A page of records to write to a table: the body as the service client read it, without secrets.
 * Only Postgres parses it, so no number passes through a float.
 */
export interface RecordPage {
  readonly body: string;
  /**
   * Key of the items in the envelope; null when the body is a bare array, '' when it is one record.
   */
  readonly itemsKey: string | null;
  /** Set if `body` is an array of several bodies, each with its own items. */
  readonly joined?: boolean;
  /** The company whose listing the page belongs to, if any. */
  readonly companyId: string | null;
  /**
   * Set when the records were requested by their ids: `companyId` is then the company that asked.
   */
  readonly byId?: boolean | undefined;
  readonly apiVersion: string;
  /** When the read began, by the warehouse's clock. */
  readonly readAt: string;
  /**
   * For documents: which of them get the usage of their records written with them. `corrected` (the default):
   * existing documents that changed. `all`: new documents, too. `alone`: all, because usage has no other
   * source. `none`: usage rows of the endpoint are written in the same transaction.
   */
  readonly usage?: 'all' | 'corrected' | 'alone' | 'none';
  /**
   * Whether the records are read because of events. Then an unchanged record counts as read now. An
   * earlier read with another state of the same `updated`, written later, does not replace it.
   */
  readonly confirms?: boolean;
  /** For companies: whether to skip companies without a row. A backfill's list adds them, and reads them next. */
  readonly existingOnly?: boolean | undefined;
  /** For usage data: the document of each row, by the row's id, when the row does not name it. */
  readonly documentOf?: Readonly<Record<string, string>>;
  /** Digests of the items in hex, in their order: see unchanged.ts. */
  readonly digests?: readonly string[] | undefined;
}

export interface WrittenRows {
  readonly inserted: number;
  readonly changed: number;
}

/** Rows that an upsert wrote. */
export interface UpsertedRows extends WrittenRows {
  /** How many of them the listing's company owns. */
  readonly own: number;
  /** The warehouse's clock meanwhile; absent if no row was written. */
  readonly now?: string | undefined;
}

/** A step `name as (…)` of a statement, or several. */
export type Cte = SQL;

/** Writes a page. `closing` is a step of its statement that ends `written`. */
export type UpsertPage = (tx: Transaction, page: RecordPage, closing: Cte) => Promise<UpsertedRows>;

/**
 * The page's records as a step `item (r, place, owner, digest)` of a statement; `owner` is the
 * company that lists them.
 */
export function items(page: RecordPage): SQL {
  const digests = array(page.digests ?? [], 'text');
  return sql`item as materialized (
    select r, place, ${page.companyId}::uuid as owner, decode(digest, 'hex') as digest
    from rows from (
      jsonb_array_elements(${itemList(page)}),
      unnest(${digests})
    ) with ordinality as t (r, digest, place)
  )`;
}

/** The items of a page as one array. */
function itemList(page: Pick<RecordPage, 'body' | 'itemsKey' | 'joined'>): SQL {
  const body = sql`${page.body}::jsonb`;
  if (page.itemsKey === '') return page.joined ? body : sql`jsonb_build_array(${body})`;
  const of = (from: SQL): SQL =>
    page.itemsKey === null ? from : sql`${from} -> ${page.itemsKey}::text`;
  if (!page.joined) return of(body);
  return sql`(
        select coalesce(jsonb_agg(item), '[]')
        from jsonb_array_elements(${body}) part, jsonb_array_elements(${of(sql`part`)}) item
      )`;
}

/** Runs steps with `written (id, inserted, own)` among them, and counts its rows. */
export async function countWritten(tx: Executor, steps: SQL): Promise<UpsertedRows> {
  const { rows } = await hot(tx, 'writePage').execute<WrittenRow>(sql`
    with ${steps}
    select inserted, own, clock_timestamp()::text as now
    from written`);
  return countRows(rows);
}

export interface WrittenRow extends Record<string, unknown> {
  readonly inserted: boolean;
  /** Whether the listing's company owns it. */
  readonly own: boolean;
  /** The warehouse's clock. */
  readonly now: string;
}

export function countRows(rows: readonly WrittenRow[]): UpsertedRows {
  const inserted = rows.filter((row) => row.inserted).length;
  const own = rows.filter((row) => row.own).length;
  return { inserted, changed: rows.length - inserted, own, now: rows[0]?.now };
}

import { type SQL, sql } from 'drizzle-orm';
import { array } from '../arrays.ts';
import type { Executor, Transaction } from '../connect.ts';

/**
 * A page of records on its way into a table: the body as the service client read it, less its
 * secrets, which only Postgres reads, so that no number passes through a float.
 */
export interface RecordPage {
  readonly body: string;
  /**
   * Key of the items in the envelope; null when the body is a bare array, '' when it is one record.
   */
  readonly itemsKey: string | null;
  /** Set when `body` is an array of such bodies, each with its own items. */
  readonly joined?: boolean;
  /** Company in whose listing the page stands, where it stands in one. */
  readonly companyId: string | null;
  /** Set where the records were asked for by their ids: the company is the one that asked. */
  readonly byId?: boolean | undefined;
  readonly apiVersion: string;
  /** When the read began, by the warehouse's clock. */
  readonly readAt: string;
  /**
   * Of documents: whose usage, as their records tell it, is written with them. `corrected` (the
   * default) are those that were known and changed; `alone` those of all, where nothing else tells
   * any usage; `none` where the usage endpoint's own rows are written in the same transaction.
   */
  readonly usage?: 'all' | 'corrected' | 'alone' | 'none';
  /**
   * Whether the records are read because events told of them: then one that is as the warehouse has
   * it counts as read now, so that a page of before that is written after, and shows another state
   * of the same `updated`, does not replace it.
   */
  readonly confirms?: boolean;
  /**
   * Of companies: whether those are left out that have no row; a backfill's list brings them, which
   * reads them next.
   */
  readonly knownOnly?: boolean | undefined;
  /**
   * Of usage data: the document of each row, by the row's id, where the row itself does not name
   * it.
   */
  readonly documentOf?: Readonly<Record<string, string>>;
  /** Digests of the items in hex, in their order: see unchanged.ts. */
  readonly digests?: readonly string[] | undefined;
}

export interface WrittenRows {
  readonly inserted: number;
  readonly changed: number;
}

/** What an upsert wrote, and how many of the rows are of the company whose listing it is. */
export interface UpsertedRows extends WrittenRows {
  readonly own: number;
}

export type UpsertPage = (tx: Transaction, page: RecordPage) => Promise<UpsertedRows>;

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
        from jsonb_array_elements(${body}) one, jsonb_array_elements(${of(sql`one`)}) item
      )`;
}

/** Runs steps that end with `written (id, inserted, own)`, and counts what they did. */
export async function countWritten(tx: Executor, steps: SQL): Promise<UpsertedRows> {
  const { rows } = await tx.execute<WrittenRow>(sql`
    with ${steps}
    select inserted, own from written`);
  return countRows(rows);
}

/** Of a row that was written: whether it is new, and the company's whose listing it is. */
export interface WrittenRow extends Record<string, unknown> {
  readonly inserted: boolean;
  readonly own: boolean;
}

export function countRows(rows: readonly WrittenRow[]): UpsertedRows {
  const inserted = rows.filter((row) => row.inserted).length;
  const own = rows.filter((row) => row.own).length;
  return { inserted, changed: rows.length - inserted, own };
}

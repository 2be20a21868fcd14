import { type SQL, sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';

/**
 * A page of records to write to a table: the body as the service client read it, without secrets.
 * Only Postgres parses it, so no number passes through a float.
 */
export interface RecordPage {
  readonly body: string;
  /** Key of the items in the envelope; null if the body is a bare array, '' if it is one record. */
  readonly itemsKey: string | null;
  /** Set if `body` is an array of several bodies, each with its own items. */
  readonly joined?: boolean;
  /** The company whose listing the page belongs to, if any. */
  readonly companyId: string | null;
  /**
   * Set if the records were requested by their ids. `companyId` is then the company for which they
   * were requested.
   */
  readonly byId?: boolean | undefined;
  readonly apiVersion: string;
  /** When the read began, by the warehouse's clock. */
  readonly readAt: string;
  /**
   * For documents: whose usage is written from the record of the document. `corrected` (the
   * default): usage of existing documents that changed. `all`: usage of new documents, too.
   * `alone`: usage of all documents in any case, because usage has no other source. `none`: no
   * usage, because the same transaction writes the rows of the usage endpoint.
   */
  readonly usage?: 'all' | 'corrected' | 'alone' | 'none';
  /**
   * Whether the records are read because of events. Then an unchanged record counts as read now. A
   * read that began earlier but is written later, with another state of the same `updated`, does
   * not replace it.
   */
  readonly confirms?: boolean;
  /**
   * For companies: whether to skip companies without a row. When a backfill reads the list, it
   * inserts such companies and reads their records next.
   */
  readonly existingOnly?: boolean | undefined;
  /** For usage data: the document of each row, by the row's id, if the row does not name it. */
  readonly documentOf?: Readonly<Record<string, string>>;
  /** Digests of the items in hex, in their order: see unchanged.ts. */
  readonly digests?: readonly string[] | undefined;
  /** A step `noted as (…)` to run in the transaction that writes the page. */
  readonly noted?: Cte | undefined;
}

export interface WrittenRows {
  readonly inserted: number;
  readonly changed: number;
}

/** One or more steps `name as (…)` of a statement. */
export type Cte = SQL;

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
export function itemList(page: Pick<RecordPage, 'body' | 'itemsKey' | 'joined'>): SQL {
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

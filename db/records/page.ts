import { type SQL, sql } from 'drizzle-orm';
import { JsonTokens } from '../../contract/json.ts';
import { array } from '../connection/arrays.ts';
import { isAhead, lockedFence, type Walk } from './fence.ts';

/** A page of records without secrets. Only Postgres parses it: no number becomes a float. */
export interface RecordPage {
  readonly body: string;
  /** Key of the items in the envelope; null if the body is a bare array, '' if it is one record. */
  readonly itemsKey: string | null;
  /** Set if `body` is an array of several bodies, each with its own items. */
  readonly joined?: boolean;
  /** The company whose listing the page belongs to, if any. */
  readonly companyId: string | null;
  /** Set if the records were requested by their ids, for the company `companyId`. */
  readonly byId?: boolean | undefined;
  readonly apiVersion: string;
  /** When the read began, by the warehouse's clock. */
  readonly readAt: string;
  /** When the walk began that the read belongs to; absent if the read is not part of a walk. */
  readonly walkBegan?: string | undefined;
  /** The walk whose page it is. If it is behind the fence of its listing, no record is written. */
  readonly walk?: Walk | undefined;
  /** For documents: whether their records are the source of their usage, because usage has no listing. */
  readonly usageOfRecords?: boolean;
  /**
   * Whether events caused the read. Then records in an older state than their rows are not counted:
   * the service may not show an announced state yet.
   */
  readonly confirms?: boolean;
  /** Whether to skip companies without a row; a backfill of the list inserts and reads them. */
  readonly existingOnly?: boolean | undefined;
  /** For usage data: the document of each row, by the row's id, if the row does not name it. */
  readonly documentOf?: Readonly<Record<string, string>>;
  /** Digests of the items in hex, in their order: see write-page.ts. */
  readonly digests?: readonly string[] | undefined;
  /**
   * For each item the texts that were replaced in it, by their paths, as JSON; null for none. Absent
   * if nothing was replaced in any item: see unholdable.ts.
   */
  readonly replaced?: readonly (string | null)[] | undefined;
}

export interface WrittenRows {
  readonly inserted: number;
  readonly changed: number;
}

/** One or more steps `name as (…)` of a statement. */
export type Cte = SQL;

/**
 * The page's records as a step `item (r, place, owner, digest)`; `owner` lists them. If texts were
 * replaced in any of them, the step also has `replaced`. It is empty if the page is behind the
 * fence of its listing, which the step `fence` locks.
 */
export function items(page: RecordPage): SQL {
  const digests = array(page.digests ?? [], 'text');
  const { replaced, walk } = page;
  return sql`${walk ? sql`${lockedFence(walk)}, ` : sql``}item as materialized (
    select
      r,
      place,
      ${page.companyId}::uuid as owner,
      decode(digest, 'hex') as digest
      ${replaced ? sql`, replaced::jsonb` : sql``}
    from rows from (
      jsonb_array_elements(${itemList(page)}),
      unnest(${digests})
      ${replaced ? sql`, unnest(${array(replaced, 'text')})` : sql``}
    ) with ordinality as t (r, digest${replaced ? sql`, replaced` : sql``}, place)
    ${walk ? sql`where ${isAhead(walk, 'page')}` : sql``}
  )`;
}

/**
 * The replaced texts of the part of a record that is at `place`, from 0, in the array `field`, with
 * their paths in the part.
 */
export const replacedIn = (field: 'sites' | 'usageData', replaced: SQL, place: SQL): SQL => {
  const start = sql`${sql.raw(`'${field}['`)} || ${place} || '].'`;
  return sql`(
        select jsonb_object_agg(substr(path, length(${start}) + 1), said)
        from jsonb_each(${replaced}) as texts (path, said)
        where starts_with(path, ${start})
      )`;
};

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

/**
 * Cuts out the exact text of each record of a page (valid JSON), in order. In Postgres, an escape
 * that it cannot hold (NUL, a lone surrogate) would make the whole page unreadable.
 */
export function itemTexts({
  body,
  itemsKey,
  joined = false,
}: Pick<RecordPage, 'body' | 'itemsKey' | 'joined'>): string[] {
  if (itemsKey === '' && !joined) return [body];
  const pageDepth = joined ? 2 : 1;
  const itemsDepth = itemsKey === '' ? 1 : itemsKey === null ? pageDepth : pageDepth + 1;
  const tokens = new JsonTokens(body);
  const texts: string[] = [];
  let isItems = !itemsKey;
  let ofEarlierPages = 0;
  let from = 0;
  while (tokens.next()) {
    const { kind, depth } = tokens;
    if (kind === 'name' && depth === pageDepth && itemsKey) {
      isItems = tokens.name === itemsKey;
      // As in JSON.parse, the last of several members with the same name counts.
      if (isItems) texts.length = ofEarlierPages;
    }
    if (kind === 'close' && depth < pageDepth) ofEarlierPages = texts.length;
    if (kind === 'open' && depth === itemsDepth + 1) from = tokens.from;
    if (!isItems || depth !== itemsDepth || kind === 'open' || kind === 'comma') continue;
    texts.push(body.slice(kind === 'close' ? from : tokens.from, tokens.to));
  }
  return texts;
}

/** Builds a page that has only these records, with their digests. */
export const pageOfTexts = (
  page: RecordPage,
  texts: readonly string[],
  digests?: readonly string[],
): RecordPage => ({
  ...page,
  body: `[${texts.join(',')}]`,
  itemsKey: null,
  joined: false,
  digests,
});

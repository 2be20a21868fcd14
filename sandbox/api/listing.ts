import type { Reader } from '../faults/snapshot.ts';

/** What a list endpoint reads: rows, their order, and how a row becomes JSON text. */
export interface Listing {
  /** Also the name under which Postgres keeps the plan, so it is unique for each combination of filters. */
  readonly name: string;
  readonly itemsKey: string;
  readonly totalKey: string;
  /** `table alias`, whose alias `where` and `order` use. */
  readonly from: string;
  readonly where: string;
  readonly order: string;
  /** Joins the rows of the page with the other tables that `record` reads. */
  readonly join?: string;
  readonly record: string;
  /** SQL for the company of the record that the list belongs to; null if the caller has no access to it. */
  readonly owner: string;
  readonly parameters: readonly unknown[];
}

export interface PageAsked {
  readonly page: number;
  readonly perPage: number;
  /** Records that a fault hides at the start of the list; otherwise 0. */
  readonly hidden: number;
}

export interface Page {
  readonly companyId: string;
  readonly body: Buffer;
}

/** service.md 8: every list has pages of 100, and only connections accept `limit`. */
export const recordsPerPage = 100;

interface PageRow {
  readonly owner: string | null;
  readonly total: number;
  readonly pages: number;
  readonly page: number;
  readonly body: string | null;
}

/**
 * Reads one page as the envelope of service.md 2.7, in one statement, so that the total and the records are
 * of the same moment. A page beyond the last returns the last page (service.md 7); an empty list has one
 * empty page. Returns undefined if the record that the list belongs to does not exist.
 */
export async function readPage(
  reader: Reader,
  listing: Listing,
  asked: PageAsked,
): Promise<Page | undefined> {
  const alias = listing.from.split(' ')[1];
  const count = listing.parameters.length;
  const [perPage, page, hidden] = [1, 2, 3].map((offset) => `$${count + offset}::bigint`);
  const text = `
with size as (select greatest(count(*) - ${hidden}, 0) as total from sandbox.${listing.from} where ${listing.where}),
  place as (select total, pages, least(${page}, pages) as page
    from size, lateral (select greatest((total + ${perPage} - 1) / ${perPage}, 1) as pages) p)
select ${listing.owner} as owner, total::float8 as total, pages::float8 as pages, page::float8 as page,
  (select string_agg(${listing.record}, ',' order by ${listing.order}) from (
    select * from sandbox.${listing.from} where ${listing.where} order by ${listing.order}
    limit ${perPage} offset (select (page - 1) * ${perPage} + ${hidden} from place)) ${alias} ${listing.join ?? ''}) as body
from place`;
  const values = [...listing.parameters, asked.perPage, asked.page, asked.hidden];
  const { rows } = await reader.query<PageRow>({ name: listing.name, text, values });
  const [row] = rows;
  if (row === undefined || row.owner === null) return undefined;
  return { companyId: row.owner, body: Buffer.from(envelope(listing, row, asked.perPage)) };
}

function envelope(listing: Listing, row: PageRow, perPage: number): string {
  const { total, pages, page } = row;
  return (
    `{"${listing.totalKey}":${total},"perPage":${perPage},"totalPages":${pages},"currentPage":${page},` +
    `"hasNext":${page < pages},"hasPrevious":${page > 1},"${listing.itemsKey}":[${row.body ?? ''}]}`
  );
}

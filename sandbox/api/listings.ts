import type { Reader } from './faults.ts';
import {
  type Conditions,
  connectionFilters,
  dateFilters,
  deletedFilter,
  intervalFilters,
  meterFilters,
  type Query,
} from './filters.ts';
import {
  connectionRecord,
  documentRecord,
  intervalRecord,
  meterRecord,
  siteRecord,
  usageRecord,
  type Version,
} from './records.ts';

/** What a listing belongs to: `/{resource}/{scope}/{id}`. */
export type Scope = 'company' | 'site' | 'connection' | 'meter' | 'document';

export interface ListAsked {
  readonly version: Version;
  readonly organizationId: string;
  readonly scope: Scope;
  readonly id: string;
  readonly query: Query;
}

/** SQL for the company of the record ($1) that a list belongs to; null in another organization than $2. */
const ownerOf: Readonly<Record<Scope, string>> = {
  company: owned('sandbox.companies c', 'c.id'),
  site: owned('sandbox.sites x join sandbox.companies c on c.id = x.company_id', 'x.id'),
  connection: owned('sandbox.connections x join sandbox.companies c on c.id = x.company_id', 'x.id'),
  meter: owned('sandbox.meters x join sandbox.companies c on c.id = x.company_id', 'x.id'),
  document: owned(
    'sandbox.documents x join sandbox.companies c on c.id = x.company_id',
    'x.deleted_at is null and x.id',
  ),
};

function owned(from: string, id: string): string {
  return `(select c.id from ${from} where ${id} = $1::uuid and c.organization_id = $2::uuid)`;
}

const scoped = (asked: ListAsked, resource: string, column: string): Conditions => ({
  name: `${resource} ${asked.scope} ${asked.version}`,
  where: `${column} = $1::uuid`,
  parameters: [asked.id, asked.organizationId],
});

export function listSites(asked: ListAsked): Listing {
  return {
    ...scoped(asked, 'sites', 's.company_id'),
    itemsKey: 'sites',
    totalKey: 'totalSites',
    from: 'sites s',
    order: 's.position',
    record: siteRecord,
    owner: ownerOf[asked.scope],
  };
}

export function listConnections(asked: ListAsked): Listing {
  return {
    ...connectionFilters(scoped(asked, 'connections', 'k.company_id'), asked.query),
    itemsKey: 'connections',
    totalKey: 'totalConnections',
    from: 'connections k',
    order: 'k.created, k.id',
    record: connectionRecord,
    owner: ownerOf[asked.scope],
  };
}

export function listMeters(asked: ListAsked): Listing {
  const conditions = scoped(asked, 'meters', `m.${asked.scope}_id`);
  return {
    ...meterFilters(conditions, asked.query, (meters) => `m.id in (${meters})`),
    itemsKey: 'meters',
    totalKey: 'totalMeters',
    from: 'meters m',
    order: 'm.number',
    record: meterRecord,
    owner: ownerOf[asked.scope],
  };
}

export function listDocuments(asked: ListAsked): Listing {
  const columns = { alias: 'd', periodStart: 'period_start', periodEnd: 'period_end' };
  const kept = deletedFilter(scoped(asked, 'documents', `d.${asked.scope}_id`), asked.query);
  const dated = dateFilters(kept, asked.query, columns, 'BILL_DATE');
  return {
    ...meterFilters(dated, asked.query, documentsOf),
    itemsKey: 'documents',
    totalKey: 'totalDocuments',
    from: 'documents d',
    order: 'd.created, d.id',
    record: documentRecord(asked.version),
    owner: ownerOf[asked.scope],
  };
}

/** The condition that a document has a usage row of one of these meters. */
const documentsOf = (meters: string): string =>
  `exists (select from sandbox.usage_data r where r.document_id = d.id and r.meter_id in (${meters}))`;

export function listUsageData(asked: ListAsked): Listing {
  const columns = { alias: 'u', periodStart: 'start_date', periodEnd: 'end_date' };
  const conditions = scoped(asked, 'usage', `u.${asked.scope}_id`);
  const defaultType = asked.scope === 'document' ? 'USAGE_PERIOD' : 'BILL_DATE';
  const dated = dateFilters(conditions, asked.query, columns, defaultType);
  return {
    ...meterFilters(dated, asked.query, (meters) => `u.meter_id in (${meters})`),
    itemsKey: 'usageData',
    totalKey: 'totalUsageData',
    from: 'usage_data u',
    join: 'join sandbox.documents d on d.id = u.document_id',
    order: 'u.created, u.id',
    record: usageRecord(asked.version),
    owner: ownerOf[asked.scope],
  };
}

export function listIntervals(asked: ListAsked): Listing {
  const conditions: Conditions = {
    name: `intervals ${asked.scope}`,
    // With only one meter, Postgres knows that the index already has the order. It then reads only up to the
    // end of the page and does not sort.
    where:
      asked.scope === 'meter'
        ? 'i.meter_number = (select m.number from sandbox.meters m where m.id = $1::uuid)'
        : 'i.meter_number in (select m.number from sandbox.meters m where m.connection_id = $1::uuid)',
    parameters: [asked.id, asked.organizationId],
  };
  const ofMeters = (meters: string) =>
    `i.meter_number in (select g.number from sandbox.meters g where g.id in (${meters}))`;
  return {
    ...meterFilters(intervalFilters(conditions, asked.query), asked.query, ofMeters),
    itemsKey: 'intervals',
    totalKey: 'totalIntervals',
    from: 'intervals i',
    join: 'join sandbox.meters m on m.number = i.meter_number',
    order: 'i.meter_number, i.start_at, i.seconds, i.usage_units',
    record: intervalRecord,
    owner: ownerOf[asked.scope],
  };
}

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

interface PageAsked {
  readonly page: number;
  readonly perPage: number;
  /** Records that a fault hides at the start of the list; otherwise 0. */
  readonly hidden: number;
}

interface Page {
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

import { Context } from '@temporalio/activity';
import type { EndpointName } from '../contract/endpoints.ts';
import { warehouseNow } from '../db/catch-up.ts';
import type { Warehouse } from '../db/connect.ts';
import { retireCompanySites, upsertCompanies, upsertCompanySites } from '../db/write/companies.ts';
import { upsertConnections } from '../db/write/connections.ts';
import { upsertDocuments } from '../db/write/documents.ts';
import { upsertMeters } from '../db/write/meters.ts';
import type { RecordPage, UpsertPage } from '../db/write/page.ts';
import { upsertUsageData } from '../db/write/usage-data.ts';
import { nothingWritten, type PageWritten, sum, writePage } from '../db/write/write-page.ts';
import type { Page } from '../service/page.ts';
import type { WalkReport } from '../service/walk.ts';
import { walkPages } from '../service/walk.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { heartbeat } from './heartbeat.ts';

/** Listings whose records go to a table of their own. */
export type Listing = 'companies' | 'connections' | 'documents' | 'usageData' | 'meters';
type Lane = 'live' | 'backfill';

const upserts: Readonly<Record<Listing, readonly UpsertPage[]>> = {
  companies: [upsertCompanies, upsertCompanySites, retireCompanySites],
  connections: [upsertConnections],
  documents: [upsertDocuments],
  usageData: [upsertUsageData],
  meters: [upsertMeters],
};

/** One page, or one record, on its way from the service into its table. */
export interface Arrival {
  readonly listing: Listing;
  readonly companyId: string | null;
  readonly readAt: string;
  readonly page: Pick<Page, 'body' | 'itemsKey' | 'ids' | 'items'> & { readonly joined?: boolean };
  /** See `RecordPage`. */
  readonly usage?: RecordPage['usage'];
}

export async function write(deps: ActivityDependencies, arrival: Arrival): Promise<PageWritten> {
  const written = await rewrite(deps.warehouse, deps.apiVersion, arrival);
  await noteFields(deps, arrival.listing, arrival.page.items);
  return written;
}

/** Has the catalogue look at records that were written, before the cursor moves on. */
export async function noteFields(
  { catalogue, apiVersion }: ActivityDependencies,
  listing: Listing | 'intervals',
  items: readonly unknown[],
): Promise<void> {
  await catalogue.note(listing, apiVersion, items);
  if (listing !== 'companies') return;
  const sites = (items as readonly { sites?: unknown }[]).flatMap((company) => company?.sites ?? []);
  await catalogue.note('sites', apiVersion, sites);
}

/** The same where there is no activity: an audit that repairs. */
export async function rewrite(
  warehouse: Warehouse,
  apiVersion: string,
  {
    listing,
    companyId,
    readAt,
    page,
    usage = 'corrected',
  }: Omit<Arrival, 'page'> & {
    readonly page: Omit<Arrival['page'], 'items'>;
  },
): Promise<PageWritten> {
  const { body, itemsKey, joined = false } = page;
  const record: RecordPage = { body, itemsKey, joined, companyId, readAt, usage, apiVersion };
  let written = nothingWritten;
  for (const upsert of upserts[listing]) {
    written = sum(written, await writePage(warehouse.db, listing, upsert, record, page.ids));
  }
  return written;
}

export interface ListingWalk {
  readonly listing: Listing;
  readonly endpoint?: EndpointName;
  readonly companyId: string | null;
  readonly params: Readonly<Record<string, string>>;
  readonly lane: Lane;
  readonly from?: number;
  /** Called when a page's rows are in Postgres; what it returns is the cursor that the heartbeat carries. */
  readonly onPage?: (page: Page, asked: number, readAt: string, written: PageWritten) => Promise<unknown>;
}

/** Walks a listing and writes each page before the next one is asked for. */
export async function walkListing(
  deps: ActivityDependencies,
  walk: ListingWalk,
): Promise<{ report: WalkReport; written: PageWritten; ids: string[]; beganAt: string }> {
  const { listing, companyId, params, lane, from = 1 } = walk;
  const signal = Context.current().cancellationSignal;
  const pages = walkPages({
    client: deps.service,
    endpoint: walk.endpoint ?? listing,
    params,
    from,
    lane,
    signal,
  });
  const beganAt = await warehouseNow(deps.warehouse.db);
  // A backfill reads the list of usage data next.
  const usage = lane === 'live' ? 'all' : 'corrected';
  let readAt = beganAt;
  let written = nothingWritten;
  let asked = from;
  const ids: string[] = [];
  for await (const page of pages) {
    written = sum(written, await write(deps, { listing, companyId, readAt, page, usage }));
    for (const id of page.ids) if (id !== null) ids.push(id);
    heartbeat(await walk.onPage?.(page, asked, readAt, written));
    asked += 1;
    if (page.hasNext) readAt = await warehouseNow(deps.warehouse.db);
  }
  return { report: pages.report(), written, ids, beganAt };
}

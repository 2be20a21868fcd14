import { Context } from '@temporalio/activity';
import type { EndpointName } from '../contract/endpoints.ts';
import { warehouseNow } from '../db/catch-up.ts';
import { nothingWritten, type PageWritten, sum } from '../db/write/write-page.ts';
import type { Page } from '../service/page.ts';
import type { WalkReport } from '../service/walk.ts';
import { walkPages } from '../service/walk.ts';
import { type Listing, write } from './arrival.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { heartbeat } from './heartbeat.ts';

type Lane = 'live' | 'backfill';

export interface ListingWalk {
  readonly listing: Listing;
  readonly endpoint?: EndpointName;
  readonly companyId: string | null;
  readonly params: Readonly<Record<string, string>>;
  readonly lane: Lane;
  readonly from?: number;
  /** See `RecordPage`. */
  readonly knownOnly?: boolean;
  /** Called when a page's rows are in Postgres; what it returns is the cursor that the heartbeat carries. */
  readonly onPage?: (page: Page, asked: number, readAt: string, written: PageWritten) => Promise<unknown>;
}

/** Walks a listing and writes each page before the next one is asked for. */
export async function walkListing(
  deps: ActivityDependencies,
  walk: ListingWalk,
): Promise<{ report: WalkReport; written: PageWritten; ids: string[]; beganAt: string }> {
  const { listing, companyId, params, lane, from = 1, knownOnly } = walk;
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
    written = sum(written, await write(deps, { listing, companyId, readAt, page, usage, knownOnly }));
    for (const id of page.ids) if (id !== null) ids.push(id);
    heartbeat(await walk.onPage?.(page, asked, readAt, written));
    asked += 1;
    if (page.hasNext) readAt = await warehouseNow(deps.warehouse.db);
  }
  return { report: pages.report(), written, ids, beganAt };
}

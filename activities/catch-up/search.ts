import { Context } from '@temporalio/activity';
import { Failure } from '../../contract/failures.ts';
import { createdTimes, warehouseNow } from '../../db/catch-up/due.ts';
import { bisectListing, type ProbedPage, type WantedRecord } from '../../service/bisect.ts';
import type { Page } from '../../service/page.ts';
import { judgePass, manifestOf } from '../../service/stability.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { write } from '../reading/page-write.ts';
import { walkListing } from '../reading/walk-listing.ts';

/** Beyond the last page of any listing: the service answers with the last (service.md 7). */
const farPage = 1_000_000;

export interface ListingSearch {
  readonly listing: 'documents' | 'usageData';
  readonly companyId: string;
  /** The records' ids, and when they were created. */
  readonly wanted: readonly WantedRecord[];
}

export interface Searched {
  /** Ids that the pages read did not contain. */
  readonly unseen: string[];
  /** Whether the listing lacks them. Otherwise it changed while it was read, and may have skipped them. */
  readonly proven: boolean;
}

/**
 * Finds records in the listing of a company with few requests. New records are on the first page or the last;
 * others are bisected by when they were created. Walks the listing when that fails. Writes every page that it
 * reads.
 */
export async function searchListing(deps: ActivityDependencies, search: ListingSearch): Promise<Searched> {
  const { listing, companyId } = search;
  const unseenBy = (ids: readonly (string | null)[]): string[] => {
    const seen = new Set(ids);
    return search.wanted.flatMap(({ id }) => (seen.has(id) ? [] : [id]));
  };
  if (search.wanted.length === 0) return { unseen: [], proven: true };
  const first = await readPage(deps, search, 1);
  const unseen = unseenBy(first.ids);
  if (unseen.length === 0 || !first.hasNext)
    return { unseen, proven: judgePass([manifestOf(1, first)]).stable };
  if ((await bisect(deps, search, first)).length === 0) return { unseen: [], proven: true };
  const walk = { listing, companyId, params: { companyId }, lane: 'live' } as const;
  const { ids, report } = await walkListing(deps, walk);
  return { unseen: unseenBy(ids), proven: judgePass(report.manifest).stable };
}

async function bisect(deps: ActivityDependencies, search: ListingSearch, first: Page): Promise<string[]> {
  const probed = async (page: Page): Promise<ProbedPage> => {
    const ids = page.ids.filter((id) => id !== null);
    const created = await createdTimes(deps.warehouse.db, search.listing, ids);
    return { number: page.currentPage, ids, keys: ids.map((id) => created.get(id) ?? null) };
  };
  const allIds = search.wanted.map(({ id }) => id);
  const last = await readPage(deps, search, farPage).catch((error: unknown) => {
    // If the service refuses such a page, the listing is walked instead.
    if (error instanceof Failure && error.status !== undefined && error.action === 'park') return undefined;
    throw error;
  });
  if (last === undefined || last.currentPage <= 1 || last.currentPage >= farPage) return allIds;
  return await bisectListing(search.wanted, await probed(first), await probed(last), async (number) => {
    const page = await readPage(deps, search, number);
    return page.currentPage === number ? await probed(page) : undefined;
  });
}

async function readPage(deps: ActivityDependencies, search: ListingSearch, asked: number): Promise<Page> {
  const { listing, companyId } = search;
  const signal = Context.current().cancellationSignal;
  const readAt = await warehouseNow(deps.warehouse.db);
  const params = { companyId };
  let release: (() => void) | undefined;
  const hold = (given: () => void): void => {
    release = given;
  };
  try {
    const page = await deps.service.page({
      endpoint: listing,
      params,
      page: asked,
      lane: 'live',
      signal,
      hold,
    });
    await write(deps, { listing, companyId, readAt, page, usage: 'all', confirms: true });
    return page;
  } finally {
    release?.();
  }
}

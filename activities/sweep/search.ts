import { Failure } from '../../contract/failures.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import type { Page } from '../../service/page.ts';
import { judgePass, manifestOf } from '../../service/stability.ts';
import { cancellation } from '../cancellation.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { write } from '../reading/page-write.ts';
import { walkListing } from '../reading/walk-listing.ts';

/** A page beyond the end of any listing. The service answers with the last page instead (service.md 7). */
const farPage = 1_000_000;

export interface ListingSearch {
  readonly listing: 'documents' | 'usageData';
  readonly companyId: string;
  readonly wanted: readonly string[];
}

export interface Searched {
  /** Ids that are on none of the pages that were read. */
  readonly unseen: string[];
  /**
   * Whether the listing lacks these ids. If false, it changed during the read and may have skipped them, or it is
   * empty, which is more likely a fault than a fact.
   */
  readonly proven: boolean;
}

/** Finds records in a company's listing, on the first and last page first; writes every page it reads. */
export async function searchListing(deps: ActivityDependencies, search: ListingSearch): Promise<Searched> {
  const { listing, companyId, wanted } = search;
  const unseenBy = (ids: readonly (string | null)[]): string[] => {
    const seen = new Set(ids);
    return wanted.filter((id) => !seen.has(id));
  };
  if (wanted.length === 0) return { unseen: [], proven: true };
  const first = await readPage(deps, search, 1);
  const unseen = unseenBy(first.ids);
  if (unseen.length === 0 || !first.hasNext)
    return { unseen, proven: first.count > 0 && judgePass([manifestOf(1, first)]).stable };
  const last = await readLastPage(deps, search);
  if (unseenBy([...first.ids, ...last]).length === 0) return { unseen: [], proven: true };
  const walk = { listing, companyId, params: { companyId }, lane: 'live' } as const;
  const { ids, report } = await walkListing(deps, walk);
  return { unseen: unseenBy(ids), proven: judgePass(report.manifest).stable };
}

/** Reads the ids of the last page. Returns none if the service refuses a page beyond the end. */
async function readLastPage(
  deps: ActivityDependencies,
  search: ListingSearch,
): Promise<readonly (string | null)[]> {
  try {
    return (await readPage(deps, search, farPage)).ids;
  } catch (error) {
    if (error instanceof Failure && error.status !== undefined && error.action === 'park') return [];
    throw error;
  }
}

async function readPage(deps: ActivityDependencies, search: ListingSearch, asked: number): Promise<Page> {
  const { listing, companyId } = search;
  const signal = cancellation();
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
    await write(deps, { listing, companyId, readAt, page, confirms: true });
    return page;
  } finally {
    release?.();
  }
}

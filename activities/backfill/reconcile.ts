import type { ListingFilter } from '../../contract/endpoints.ts';
import { Failure } from '../../contract/failures.ts';
import { batches } from '../../contract/limits.ts';
import { type ReconciledResource, type RunState, reconciledResources } from '../../contract/names.ts';
import { attemptPolicy, recordPolicy } from '../../contract/retry-policy.ts';
import { agreeing, counted, untilDecided } from '../../contract/words.ts';
import { countMissed } from '../../db/backfill/missed.ts';
import {
  clearListed,
  type ListedDocument,
  reconciledSince,
  retireListed,
} from '../../db/backfill/reconcile.ts';
import {
  finishRun,
  type RunCounts,
  type RunKey,
  readCompanyInRun,
  startRun,
} from '../../db/backfill/runs.ts';
import { countTombstoned } from '../../db/deletes/absent.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import { nothingWritten, type PageWritten, sum, unchangedOf } from '../../db/records/write-page.ts';
import type { Page } from '../../service/page.ts';
import { confirmsPass, judgePass, type PageManifest } from '../../service/stability.ts';
import { walkPages } from '../../service/walk.ts';
import { cancellation } from '../activity-context.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { failIfClosed } from '../gates.ts';
import { refusal } from '../own-failure.ts';
import { write } from '../reading/page-write.ts';
import type { CompanyKey } from './cursor.ts';

/**
 * Reads a company's recent updates. Adds the resources that other companies can skip to `skipped`: the filter is
 * ignored or the key refused. The full backfill reads them.
 */
export async function reconcileCompany(
  deps: ActivityDependencies,
  company: CompanyKey,
  skipped: Set<ReconciledResource>,
): Promise<void> {
  const { finished } = await readCompanyInRun(deps.warehouse.db, company);
  for (const resource of reconciledResources) {
    if (finished.includes(resource) || skipped.has(resource)) continue;
    const part = { ...company, resource };
    const failure = await orFail(deps, part, () => reconcileListing(deps, part));
    if (failure?.code === 'SERVICE_FILTER_IGNORED') skipped.add(resource);
    // The key is the same for every company.
    if (failure?.code === 'SERVICE_KEY_REFUSED') for (const name of reconciledResources) skipped.add(name);
  }
}

/** Reads a part of the run. A permanent refusal fails the part and is returned. */
async function orFail(
  deps: ActivityDependencies,
  part: RunKey,
  read: () => Promise<void>,
): Promise<Failure | undefined> {
  const { db } = deps.warehouse;
  await startRun(db, part, { kind: 'reconcile' });
  try {
    await failIfClosed(deps);
    await read();
    return undefined;
  } catch (error) {
    if (error instanceof TooManyPages) {
      await finishRun(db, part, 'partial', { error: error.message });
      return undefined;
    }
    const failure = await refusal(deps, error);
    const { companyId, resource } = part;
    deps.log.warn({ companyId, resource, code: failure.code, err: failure }, 'not reconciled');
    await finishRun(db, part, 'failed', { error: `${failure.code}: ${failure.message}` });
    return failure;
  }
}

class TooManyPages extends Error {}

/** Why a pass proves nothing about its listing; undefined if it does. */
function whyUnstable({ manifest }: Pick<Read, 'manifest'>): string | undefined {
  const { stable, reasons } = judgePass(manifest);
  return stable ? undefined : `not stable: ${reasons.join('; ')}`;
}

const stateOf = (error: string | undefined): RunState => (error === undefined ? 'complete' : 'suspect');

/** What a part counts whose last pass this is. */
function countsOf({ manifest }: Pick<Read, 'manifest'>, written: PageWritten): RunCounts {
  const { total, distinct } = judgePass(manifest);
  const unchanged = unchangedOf(distinct, written);
  const pages = manifest.length;
  return { ...written, pages, passes: 1, reportedTotal: total, distinctIds: distinct, unchanged };
}

type ListingReconcile = CompanyKey & { readonly resource: ReconciledResource };

async function reconcileListing(deps: ActivityDependencies, part: ListingReconcile): Promise<void> {
  const { service, warehouse } = deps;
  const { db } = warehouse;
  const { runId, companyId, resource } = part;
  if (!service.has(resource, 'updatedSince')) {
    const lacks = service.has(resource) ? 'filter for recent updates' : 'such endpoint';
    await finishRun(db, part, 'complete', { error: `the endpoint catalogue has no ${lacks}` });
    return;
  }
  const since = await reconciledSince(db, recordPolicy.reconciledDays);
  const listing = { ...part, since };
  const deletable = resource === 'documents' && service.has(resource, 'withDeleted');
  // Read before the live listing, so that a document which is live now is also in the live listing.
  const withDeleted = deletable ? await readUpdated(deps, listing, { deleted: true }) : undefined;
  const live = await readLive(deps, listing);
  const gone = withDeleted && (await tombstoneDeleted(deps, listing, withDeleted, live));
  const error = gone?.unsure ?? whyUnstable(live);
  const counts = {
    ...countsOf(live, live.written),
    passes: live.passes,
    tombstoned: await countTombstoned(db, runId, { resource, companyId }),
    missed: await countMissed(db, runId, { resource, companyId }),
    requests: live.requests + (withDeleted?.manifest.length ?? 0) + (gone?.pages ?? 0),
  };
  await finishRun(db, part, stateOf(error), { error, counts });
}

type UpdatedListing = ListingReconcile & { readonly since: string };

/** Reads the live listing; again, up to `attemptPolicy.passesMax` passes, if it changed meanwhile. */
async function readLive(
  deps: ActivityDependencies,
  listing: UpdatedListing,
): Promise<Read & { readonly passes: number; readonly requests: number }> {
  let read = await readUpdated(deps, listing);
  let { written } = read;
  let requests = read.manifest.length;
  let passes = 1;
  for (; passes < attemptPolicy.passesMax && whyUnstable(read) !== undefined; passes += 1) {
    read = await readUpdated(deps, listing);
    written = sum(written, read.written);
    requests += read.manifest.length;
  }
  return { ...read, written, passes, requests };
}

interface Read {
  readonly beganAt: string;
  readonly manifest: readonly PageManifest[];
  readonly documents: readonly ListedDocument[];
  readonly written: PageWritten;
}

/** Reads what was updated to its end, and writes it. With deleted records it writes nothing. */
async function readUpdated(
  deps: ActivityDependencies,
  listing: UpdatedListing,
  { deleted = false } = {},
): Promise<Read> {
  const { db } = deps.warehouse;
  const { companyId, resource, since } = listing;
  const deletedToo: readonly ListingFilter[] = deleted ? ['withDeleted'] : [];
  const walk = walkPages({
    client: deps.service,
    endpoint: resource,
    params: { companyId, since },
    filters: ['updatedSince', ...deletedToo],
    lane: 'backfill',
    signal: cancellation(),
  });
  const beganAt = await warehouseNow(db);
  let readAt = beganAt;
  let written = nothingWritten;
  let trusted = false;
  const documents: ListedDocument[] = [];
  for await (const page of walk) {
    if (page.totalPages !== null && page.totalPages > batches.pagesOfReconcile)
      throw new TooManyPages(
        `${page.totalPages} pages were updated since ${since}: more than ${batches.pagesOfReconcile} are left to the full backfill`,
      );
    if (!trusted) trusted = await filterHolds(deps, listing, page, deletedToo);
    if (!deleted) {
      const arrival = { listing: resource, companyId, readAt, walkBegan: beganAt, page };
      written = sum(written, await write(deps, arrival));
    }
    for (const [at, id] of page.ids.entries()) {
      if (id !== null) documents.push({ id, updated: updatedOf(page.items[at]) ?? null });
    }
    if (page.hasNext) readAt = await warehouseNow(db);
  }
  return { beganAt, manifest: walk.report().manifest, documents, written };
}

/**
 * Checks that the service applied the filter, or throws SERVICE_FILTER_IGNORED. Older records suggest that it
 * did not, unless the total without the filter is larger: then it filters by another time than `updated`.
 * @returns true if the totals proved it, so that no other page needs the check
 */
async function filterHolds(
  deps: ActivityDependencies,
  { companyId, resource, since }: UpdatedListing,
  page: Page,
  otherFilters: readonly ListingFilter[],
): Promise<boolean> {
  // One day of tolerance, as a record's time may be in another zone.
  const oldest = new Date(Date.parse(since) - 86_400_000).toISOString().slice(0, 10);
  const old = page.items.filter((item) => (updatedOf(item)?.slice(0, 10) ?? since) < oldest).length;
  if (old === 0) return false;
  const unfiltered = await deps.service.page({
    endpoint: resource,
    params: { companyId },
    page: 1,
    lane: 'backfill',
    filters: otherFilters,
    signal: cancellation(),
  });
  if (page.total !== null && unfiltered.total !== null && page.total < unfiltered.total) return true;
  throw new Failure(
    'SERVICE_FILTER_IGNORED',
    `the service reports ${page.total} ${resource} updated since ${since} and ${unfiltered.total} in total, but ${old} records of the page are older`,
  );
}

function updatedOf(item: unknown): string | undefined {
  const { updated } = (item ?? {}) as { updated?: unknown };
  return typeof updated === 'string' && /^\d{4}-\d{2}-\d{2}/.test(updated) ? updated : undefined;
}

const idsOf = (...passes: readonly Read[]): Set<string> =>
  new Set(passes.flatMap(({ manifest }) => manifest.flatMap(({ ids }) => ids.filter((id) => id !== null))));

/**
 * Tombstones documents that the listing with deleted documents has and the live listing has not. The former
 * may hold all documents or only deleted ones. A second pass confirms it, because listings change.
 * @returns the pages read to be sure, and why not all documents listed as deleted were tombstoned
 */
async function tombstoneDeleted(
  deps: ActivityDependencies,
  listing: UpdatedListing,
  withDeleted: Read,
  live: Read,
): Promise<{ readonly pages: number; readonly unsure?: string }> {
  const { db } = deps.warehouse;
  const { runId, companyId } = listing;
  const alive = idsOf(live);
  await clearListed(db, companyId, [...alive]);
  const suspects = withDeleted.documents.filter(({ id }) => !alive.has(id));
  if (suspects.length === 0) return { pages: 0 };
  const again = whyUnstable(live) === undefined ? await readUpdated(deps, listing) : undefined;
  const pages = again?.manifest.length ?? 0;
  if (again === undefined || !confirmsPass(live.manifest, again.manifest)) {
    return { pages, unsure: 'the listing moved while it was read: no document was tombstoned' };
  }
  const stillAlive = idsOf(again);
  const gone = suspects.filter(({ id }) => !stillAlive.has(id));
  const { beganAt } = withDeleted;
  const retired = await retireListed(db, runId, companyId, gone, beganAt, deps.deletesCap);
  if (retired.quarantined === 0) return { pages };
  const unsure = `${retired.quarantined} of ${counted(retired.live, 'row')} ${agreeing(retired.quarantined, 'is', 'are')} listed as deleted: ${untilDecided}`;
  return { pages, unsure };
}

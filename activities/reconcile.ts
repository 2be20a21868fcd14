import { Context } from '@temporalio/activity';
import type { ListingFilter } from '../contract/endpoints.ts';
import { Failure } from '../contract/failures.ts';
import { batches } from '../contract/limits.ts';
import type { ReconciledResource, RunState } from '../contract/names.ts';
import { attemptPolicy, recordPolicy } from '../contract/retry-policy.ts';
import { untilDecided } from '../contract/words.ts';
import { countMissed } from '../db/backfill/missed.ts';
import {
  changedUntimed,
  clearListed,
  type ListedDocument,
  reconciledSince,
  retireListed,
  type UntimedListing,
} from '../db/backfill/reconcile.ts';
import { finishRun, type RunKey, startRun } from '../db/backfill/runs.ts';
import { warehouseNow } from '../db/catch-up/due.ts';
import { countTombstoned } from '../db/deletes/absent.ts';
import { nothingWritten, type PageWritten, sum, unchangedOf } from '../db/records/write-page.ts';
import type { Page } from '../service/page.ts';
import { confirmsPass, judgePass, type PageManifest } from '../service/stability.ts';
import { walkPages } from '../service/walk.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';
import { refusal } from './own-failure.ts';
import { write } from './reading/page-write.ts';
import { walkListing } from './reading/walk-listing.ts';
import { noteRunStart } from './runs.ts';

export interface CompanyReconcile {
  readonly runId: string;
  readonly companyId: string;
  readonly resources: readonly ReconciledResource[];
}

interface ListingReconcile {
  readonly runId: string;
  readonly companyId: string;
  readonly resource: ReconciledResource;
}

/** The resources that other companies can skip; `vain` in the results of version 0.1.0. */
export interface CompanyReconciled {
  readonly unsupportedFilters?: readonly ReconciledResource[];
  readonly vain?: readonly ReconciledResource[];
}

export function reconcileActivities(deps: ActivityDependencies) {
  return {
    beginReconcile: mapFailures(async ({ runId }: { runId: string }): Promise<void> => {
      await noteRunStart(deps, runId, 'reconcile');
    }),

    /**
     * Reads a company's recent updates, and reads listings again that changed but have no time. Returns the
     * resources that other companies can skip because the filter is ignored or the key refused. A permanent
     * refusal fails only its resource; Temporal retries other failures.
     */
    reconcileCompany: mapFailures(
      async ({ runId, companyId, resources }: CompanyReconcile): Promise<CompanyReconciled> => {
        const unsupportedFilters: ReconciledResource[] = [];
        for (const listing of await changedUntimed(deps.warehouse.db, runId, companyId)) {
          await reread(deps, { runId, companyId, listing });
        }
        for (const resource of resources) {
          const part = { runId, companyId, resource };
          const failure = await orFail(deps, part, () => reconcileListing(deps, part));
          // The key is the same for every company.
          if (failure?.code === 'SERVICE_KEY_REFUSED') return { unsupportedFilters: [...resources] };
          if (failure?.code === 'SERVICE_FILTER_IGNORED') unsupportedFilters.push(resource);
        }
        return { unsupportedFilters };
      },
    ),
  };
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
    await read();
    return undefined;
  } catch (error) {
    const failure = await refusal(deps, error);
    const { companyId, resource } = part;
    deps.log.warn({ companyId, resource, code: failure.code, err: failure }, 'not reconciled');
    await finishRun(db, part, 'failed', { error: `${failure.code}: ${failure.message}` });
    return failure;
  }
}

/**
 * Reads a listing again whose rows an older page may have overwritten: records carry no time, and this read
 * is newer.
 */
async function reread(
  deps: ActivityDependencies,
  { runId, companyId, listing }: { runId: string; companyId: string; listing: UntimedListing },
): Promise<void> {
  if (!deps.service.has(listing)) return;
  const { db } = deps.warehouse;
  const ofCompany = listing === 'companies' ? null : companyId;
  const key = { runId, companyId: ofCompany, resource: listing };
  const params: Record<string, string> = ofCompany === null ? {} : { companyId };
  await orFail(deps, key, async () => {
    const walk = { listing, companyId: ofCompany, params, lane: 'backfill', existingOnly: true } as const;
    const { report, written } = await walkListing(deps, walk);
    const { stable, reasons, distinct, total } = judgePass(report.manifest);
    const unchanged = unchangedOf(distinct, written);
    const pages = report.manifest.length;
    const counts = { ...written, pages, passes: 1, reportedTotal: total, distinctIds: distinct, unchanged };
    await finishRun(db, key, stable ? 'complete' : 'suspect', {
      counts: { ...counts, tombstoned: 0 },
      ...(stable ? {} : { error: `not stable: ${reasons.join('; ')}` }),
    });
  });
}

/** Why a resource was not read, or not to its end; and the state of its part of the run. */
class NotRead extends Error {
  readonly state: RunState;
  constructor(state: RunState, message: string) {
    super(message);
    this.state = state;
  }
}

async function reconcileListing(deps: ActivityDependencies, input: ListingReconcile): Promise<void> {
  const { db } = deps.warehouse;
  const { runId, companyId, resource } = input;
  try {
    if (!deps.service.has(resource)) {
      throw new NotRead('complete', 'the endpoint catalogue has no such endpoint');
    }
    if (!deps.service.has(resource, 'updatedSince')) {
      throw new NotRead('complete', 'the endpoint catalogue has no filter for recent updates');
    }
    const since = await reconciledSince(db, recordPolicy.reconciledDays);
    const deletable = resource === 'documents' && deps.service.has(resource, 'withDeleted');
    // Read before the live listing, so that a document which is live now is also in the live listing.
    const withDeleted = deletable
      ? await readUpdated(deps, { ...input, since, filters: ['updatedSince', 'withDeleted'], keep: false })
      : undefined;
    const live = await readLive(deps, { ...input, since, filters: ['updatedSince'], keep: true });
    const judgement = judgePass(live.manifest);
    const gone =
      withDeleted === undefined ? noneDeleted : await tombstoneDeleted(deps, input, since, withDeleted, live);
    const unstable = judgement.stable ? undefined : `not stable: ${judgement.reasons.join('; ')}`;
    const error = gone.unsure ?? unstable;
    await finishRun(db, input, error === undefined ? 'complete' : 'suspect', {
      ...(error === undefined ? {} : { error }),
      counts: {
        ...live.written,
        pages: live.manifest.length,
        passes: live.passes,
        reportedTotal: judgement.total,
        distinctIds: judgement.distinct,
        unchanged: unchangedOf(judgement.distinct, live.written),
        tombstoned: await countTombstoned(db, runId, { resource, companyId }),
        missed: await countMissed(db, runId, { resource, companyId }, attemptPolicy.eventOnItsWaySeconds),
        requests: live.requests + (withDeleted?.manifest.length ?? 0) + gone.pages,
      },
    });
  } catch (error) {
    if (!(error instanceof NotRead)) throw error;
    await finishRun(db, input, error.state, { error: error.message });
  }
}

interface UpdatedListing extends ListingReconcile {
  readonly since: string;
  readonly filters: readonly ListingFilter[];
  /** Whether to write the records. Deleted records are not written. */
  readonly keep: boolean;
}

/** The last pass over the live listing, with the counts of all passes. */
interface LiveRead extends Read {
  readonly passes: number;
  readonly requests: number;
}

/** Reads the live listing; again, up to `attemptPolicy.passesMax` passes, if it changed meanwhile. */
async function readLive(deps: ActivityDependencies, listing: UpdatedListing): Promise<LiveRead> {
  let read = await readUpdated(deps, listing);
  let requests = read.manifest.length;
  let passes = 1;
  while (passes < attemptPolicy.passesMax && !judgePass(read.manifest).stable) {
    const again = await readUpdated(deps, listing);
    read = { ...again, written: sum(read.written, again.written) };
    requests += again.manifest.length;
    passes += 1;
  }
  return { ...read, passes, requests };
}

interface Read {
  readonly beganAt: string;
  readonly manifest: readonly PageManifest[];
  readonly documents: readonly ListedDocument[];
  readonly written: PageWritten;
}

/** Reads a filtered listing to its end. */
async function readUpdated(deps: ActivityDependencies, listing: UpdatedListing): Promise<Read> {
  const { db } = deps.warehouse;
  const { companyId, resource, since, filters, keep } = listing;
  const walk = walkPages({
    client: deps.service,
    endpoint: resource,
    params: { companyId, since },
    filters,
    lane: 'backfill',
    signal: Context.current().cancellationSignal,
  });
  const beganAt = await warehouseNow(db);
  let readAt = beganAt;
  let written = nothingWritten;
  let trusted = false;
  const documents: ListedDocument[] = [];
  for await (const page of walk) {
    if (page.totalPages !== null && page.totalPages > batches.pagesOfReconcile) {
      const updated = `${page.totalPages} pages were updated since ${since}`;
      throw new NotRead(
        'partial',
        `${updated}: more than ${batches.pagesOfReconcile} are left to the full backfill`,
      );
    }
    if (!trusted) trusted = await filterHolds(deps, listing, page);
    if (keep) written = sum(written, await write(deps, { listing: resource, companyId, readAt, page }));
    for (const [at, id] of page.ids.entries()) {
      if (id !== null) documents.push({ id, updated: updatedOf(page.items[at]) ?? null });
    }
    if (page.hasNext) readAt = await warehouseNow(db);
  }
  return { beganAt, manifest: walk.report().manifest, documents, written };
}

/**
 * Checks that the service applied the filter. Records older than `since` suggest that it did not, unless the
 * total without the filter is larger: then the filter uses another time than `updated`.
 * @returns true if the totals proved it, so that no other page needs the check
 * @throws Failure SERVICE_FILTER_IGNORED
 */
async function filterHolds(
  deps: ActivityDependencies,
  { companyId, resource, since, filters }: UpdatedListing,
  page: Page,
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
    filters: filters.filter((filter) => filter !== 'updatedSince'),
    signal: Context.current().cancellationSignal,
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

const idsOf = (manifest: readonly PageManifest[]): string[] =>
  manifest.flatMap((page) => page.ids.filter((id) => id !== null));

interface DeletedRead {
  /** Pages that were read to be sure. */
  readonly pages: number;
  /** Why not all documents listed as deleted were tombstoned. */
  readonly unsure?: string;
}
const noneDeleted: DeletedRead = { pages: 0 };

/**
 * Tombstones documents that are in the listing with deleted documents and not in the live listing. It makes
 * no difference whether the former has only deleted documents or all. The live listing may change while it is
 * read, so a second pass has to confirm it.
 */
async function tombstoneDeleted(
  deps: ActivityDependencies,
  { runId, companyId, resource }: ListingReconcile,
  since: string,
  withDeleted: Read,
  live: Read,
): Promise<DeletedRead> {
  const { db } = deps.warehouse;
  const alive = new Set(idsOf(live.manifest));
  await clearListed(db, companyId, [...alive]);
  const suspects = withDeleted.documents.filter(({ id }) => !alive.has(id));
  if (suspects.length === 0) return noneDeleted;
  const again = judgePass(live.manifest).stable
    ? await readUpdated(deps, { runId, companyId, resource, since, filters: ['updatedSince'], keep: true })
    : undefined;
  const pages = again?.manifest.length ?? 0;
  if (again === undefined || !confirmsPass(live.manifest, again.manifest)) {
    return { pages, unsure: 'the listing moved while it was read: no document was tombstoned' };
  }
  const stillAlive = new Set(idsOf(again.manifest));
  const gone = suspects.filter(({ id }) => !stillAlive.has(id));
  const { beganAt } = withDeleted;
  const retired = await retireListed(db, runId, companyId, gone, beganAt, deps.deletesCap);
  if (retired.quarantined === 0) return { pages };
  const unsure = `${retired.quarantined} of ${retired.live} rows are listed as deleted: ${untilDecided}`;
  return { pages, unsure };
}

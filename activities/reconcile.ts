import { Context } from '@temporalio/activity';
import type { ListingFilter } from '../contract/endpoints.ts';
import { Failure } from '../contract/failures.ts';
import { limits } from '../contract/limits.ts';
import type { ReconciledResource, RunState } from '../contract/names.ts';
import { countMissed } from '../db/backfill/missed.ts';
import { finishRun, startRun } from '../db/backfill/runs.ts';
import { warehouseNow } from '../db/catch-up/due.ts';
import { countTombstoned } from '../db/deletes/absent.ts';
import {
  changedUntimed,
  clearListed,
  type ListedDocument,
  reconciledSince,
  retireListed,
  type UntimedListing,
} from '../db/reconcile.ts';
import { nothingWritten, type PageWritten, sum } from '../db/records/write-page.ts';
import type { Page } from '../service/page.ts';
import { confirmsPass, judgePass, type PageManifest } from '../service/stability.ts';
import { walkPages } from '../service/walk.ts';
import { missedGraceSeconds } from './backfill/listing.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { heartbeat } from './heartbeat.ts';
import { mapFailures } from './map-failures.ts';
import { refusal } from './own-failure.ts';
import { write } from './reading/page-write.ts';
import { walkListing } from './reading/walk-listing.ts';
import { startWhole } from './runs.ts';

/** Pages of one listing that a reconcile reads: more is a first sync, or work for the night. */
const pagesMax = 100;

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

export function reconcileActivities(deps: ActivityDependencies) {
  return {
    beginReconcile: mapFailures(async ({ runId }: { runId: string }): Promise<void> => {
      await startWhole(deps, runId, 'reconcile');
    }),

    /**
     * Reads what the service updated lately of a company, and again what changed of it and says no time. Returns the
     * resources that no other company need be asked for: the filter is ignored, or the key refused. What the service
     * refuses for good fails that resource alone; what passes is retried by Temporal.
     */
    reconcileCompany: mapFailures(
      async ({ runId, companyId, resources }: CompanyReconcile): Promise<{ vain: ReconciledResource[] }> => {
        const vain: ReconciledResource[] = [];
        for (const listing of await changedUntimed(deps.warehouse.db, runId, companyId)) {
          await rereadOrFail(deps, { runId, companyId, listing });
        }
        for (const resource of resources) {
          const failure = await reconcileOrFail(deps, { runId, companyId, resource });
          // Nobody's key is right for one company and wrong for another.
          if (failure?.code === 'SERVICE_KEY_REFUSED') return { vain: [...resources] };
          if (failure?.code === 'SERVICE_FILTER_IGNORED') vain.push(resource);
        }
        return { vain };
      },
    ),
  };
}

async function reconcileOrFail(
  deps: ActivityDependencies,
  input: ListingReconcile,
): Promise<Failure | undefined> {
  const { db } = deps.warehouse;
  await startRun(db, input, { kind: 'reconcile' });
  try {
    await reconcileListing(deps, input);
    return undefined;
  } catch (error) {
    const failure = await refusal(deps, error);
    const { companyId, resource } = input;
    deps.log.warn({ companyId, resource, code: failure.code, err: failure }, 'not reconciled');
    await finishRun(db, input, 'failed', { error: `${failure.code}: ${failure.message}` });
    return failure;
  }
}

/** Reads again what may have been changed by a page of before: whatever it holds now is newer. */
async function rereadOrFail(
  deps: ActivityDependencies,
  { runId, companyId, listing }: { runId: string; companyId: string; listing: UntimedListing },
): Promise<void> {
  if (!deps.service.has(listing)) return;
  const { db } = deps.warehouse;
  const ofCompany = listing === 'companies' ? null : companyId;
  const key = { runId, companyId: ofCompany, resource: listing };
  const params: Record<string, string> = ofCompany === null ? {} : { companyId };
  await startRun(db, key, { kind: 'reconcile' });
  try {
    const walk = { listing, companyId: ofCompany, params, lane: 'backfill', knownOnly: true } as const;
    const { report, written } = await walkListing(deps, walk);
    const { stable, reasons, distinct, total } = judgePass(report.manifest);
    const unchanged = Math.max(0, distinct - written.inserted - written.changed - written.rejected);
    const pages = report.manifest.length;
    const counts = { ...written, pages, passes: 1, totalSaid: total, distinctIds: distinct, unchanged };
    await finishRun(db, key, stable ? 'complete' : 'suspect', {
      counts: { ...counts, tombstoned: 0 },
      ...(stable ? {} : { error: `not stable: ${reasons.join('; ')}` }),
    });
  } catch (error) {
    const { code, message } = await refusal(deps, error);
    await finishRun(db, key, 'failed', { error: `${code}: ${message}` });
  }
}

/** What a run says of a resource that it did not read, or not to its end. */
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
      throw new NotRead('complete', 'the endpoint catalogue has no filter of what was updated');
    }
    const since = await reconciledSince(db, deps.reconcileDays);
    const deletable = resource === 'documents' && deps.service.has(resource, 'withDeleted');
    // Before the others: of what it shows, those that live are still there when the others are read.
    const withDeleted = deletable
      ? await readUpdated(deps, { ...input, since, filters: ['updatedSince', 'withDeleted'], keep: false })
      : undefined;
    const live = await readLive(deps, { ...input, since, filters: ['updatedSince'], keep: true });
    const judgement = judgePass(live.manifest);
    const gone =
      withDeleted === undefined ? nobody : await buryDeleted(deps, input, since, withDeleted, live);
    const unstable = judgement.stable ? undefined : `not stable: ${judgement.reasons.join('; ')}`;
    const error = gone.unsure ?? unstable;
    const { inserted, changed, rejected } = live.written;
    await finishRun(db, input, error === undefined ? 'complete' : 'suspect', {
      ...(error === undefined ? {} : { error }),
      counts: {
        ...live.written,
        pages: live.manifest.length,
        passes: live.passes,
        totalSaid: judgement.total,
        distinctIds: judgement.distinct,
        unchanged: Math.max(0, judgement.distinct - inserted - changed - rejected),
        tombstoned: await countTombstoned(db, runId, { resource, companyId }),
        missed: await countMissed(db, runId, { resource, companyId }, missedGraceSeconds),
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
  /** Whether the records go to their table: deleted ones do not. */
  readonly keep: boolean;
}

/** What lives, as the last of some passes showed it; what was written is that of all of them. */
interface LiveRead extends Read {
  readonly passes: number;
  readonly requests: number;
}

/** Reads what lives, again where it moved meanwhile. */
async function readLive(deps: ActivityDependencies, listing: UpdatedListing): Promise<LiveRead> {
  let read = await readUpdated(deps, listing);
  let requests = read.manifest.length;
  let passes = 1;
  while (passes < limits.passesMax && !judgePass(read.manifest).stable) {
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

/** Reads a listing by its filters to the end. */
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
    if (page.totalPages !== null && page.totalPages > pagesMax) {
      const said = `${page.totalPages} pages were updated since ${since}`;
      throw new NotRead('partial', `${said}: more than ${pagesMax} are left to the full backfill`);
    }
    if (!trusted) trusted = await filterHolds(deps, listing, page);
    if (keep) written = sum(written, await write(deps, { listing: resource, companyId, readAt, page }));
    for (const [at, id] of page.ids.entries()) {
      if (id !== null) documents.push({ id, updated: updatedOf(page.items[at]) ?? null });
    }
    heartbeat();
    if (page.hasNext) readAt = await warehouseNow(db);
  }
  return { beganAt, manifest: walk.report().manifest, documents, written };
}

/**
 * Records older than what was asked for say that the filter was ignored, unless the service shows more without it:
 * then it goes by another time than the one that the records tell. Returns true when the total settled it for good.
 * @throws Failure SERVICE_FILTER_IGNORED
 */
async function filterHolds(
  deps: ActivityDependencies,
  { companyId, resource, since, filters }: UpdatedListing,
  page: Page,
): Promise<boolean> {
  // A day more, as the zone of a record's time may be another.
  const oldest = new Date(Date.parse(since) - 86_400_000).toISOString().slice(0, 10);
  const old = page.items.filter((item) => (updatedOf(item)?.slice(0, 10) ?? since) < oldest).length;
  if (old === 0) return false;
  const whole = await deps.service.page({
    ...{ endpoint: resource, params: { companyId }, page: 1, lane: 'backfill' },
    filters: filters.filter((filter) => filter !== 'updatedSince'),
    signal: Context.current().cancellationSignal,
  });
  if (page.total !== null && whole.total !== null && page.total < whole.total) return true;
  throw new Failure(
    'SERVICE_FILTER_IGNORED',
    `of ${resource} updated since ${since} the service says ${page.total} records, of all ${whole.total}, and ${old} of a page are older`,
  );
}

function updatedOf(item: unknown): string | undefined {
  const { updated } = (item ?? {}) as { updated?: unknown };
  return typeof updated === 'string' && /^\d{4}-\d{2}-\d{2}/.test(updated) ? updated : undefined;
}

const idsOf = (manifest: readonly PageManifest[]): string[] =>
  manifest.flatMap((page) => page.ids.filter((id) => id !== null));

interface Buried {
  /** Pages that were read for it. */
  readonly pages: number;
  /** Why not all were that the service shows as deleted. */
  readonly unsure?: string;
}
const nobody: Buried = { pages: 0 };

/**
 * Tombstones what the service shows among deleted documents and not among those that live: what stands in both lives.
 * Whether the former are deleted ones alone or all of them (service-facts 1.1) makes no difference. The listing of
 * those that live may move while it is read, so it is read once more, to be sure that it showed them all.
 */
async function buryDeleted(
  deps: ActivityDependencies,
  { runId, companyId, resource }: ListingReconcile,
  since: string,
  withDeleted: Read,
  live: Read,
): Promise<Buried> {
  const { db } = deps.warehouse;
  const alive = new Set(idsOf(live.manifest));
  await clearListed(db, companyId, [...alive]);
  const suspects = withDeleted.documents.filter(({ id }) => !alive.has(id));
  if (suspects.length === 0) return nobody;
  const again = judgePass(live.manifest).stable
    ? await readUpdated(deps, { runId, companyId, resource, since, filters: ['updatedSince'], keep: true })
    : undefined;
  const pages = again?.manifest.length ?? 0;
  if (again === undefined || !confirmsPass(live.manifest, again.manifest)) {
    return { pages, unsure: 'the listing moved while it was read: no deleted document was buried' };
  }
  const stillAlive = new Set(idsOf(again.manifest));
  const gone = suspects.filter(({ id }) => !stillAlive.has(id));
  const { beganAt } = withDeleted;
  const retired = await retireListed(db, runId, companyId, gone, beganAt, deps.deletesCap);
  if (retired.quarantined === 0) return { pages };
  const unsure = `${retired.quarantined} of ${retired.live} rows are listed as deleted: quarantined until somebody decides (metersync deletes list)`;
  return { pages, unsure };
}

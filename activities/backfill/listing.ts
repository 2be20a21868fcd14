import { Context } from '@temporalio/activity';
import type { RunState } from '../../contract/names.ts';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import { untilDecided } from '../../contract/words.ts';
import { finishListing, notePages, notingPages, readManifest } from '../../db/backfill/manifest.ts';
import { finishRun, startRun } from '../../db/backfill/runs.ts';
import { countAbsent, onlyExplained, retireAbsent, type Seen } from '../../db/deletes/absent.ts';
import { absentSites, clearSiteQuarantine, endSiteDecisions } from '../../db/deletes/absent-sites.ts';
import { goneCompanies, livingOf } from '../../db/deletes/gone-companies.ts';
import { unlistRecords } from '../../db/records/owner.ts';
import { nothingWritten, type PageWritten, sum, unchangedOf } from '../../db/records/write-page.ts';
import type { ListedResource } from '../../db/resources.ts';
import {
  confirmsPass,
  judgePass,
  manifestOf,
  type PageManifest,
  type PassJudgement,
} from '../../service/stability.ts';
import type { Allowance } from '../allowance.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import type { PageRead } from '../reading/read-ahead.ts';
import { walkListing } from '../reading/walk-listing.ts';

/** A listing of a company, or the list of companies. */
export interface ListingBackfill {
  readonly runId: string;
  readonly companyId: string | null;
  readonly resource: ListedResource;
}

/** The heartbeat's details: the last page whose rows are in Postgres, and the counts so far. */
interface Cursor {
  readonly resource: ListedResource;
  readonly companyId: string | null;
  readonly pass: number;
  readonly page: number;
  readonly written: PageWritten;
}

interface Pass {
  readonly manifest: readonly PageManifest[];
  readonly judgement: PassJudgement;
  readonly beganAt: string;
}

/** Why a part of a run read nothing. */
export const noEndpoint = 'the endpoint catalogue has no such endpoint';

/**
 * Reads a listing to its end; again, up to `attemptPolicy.passesMax` passes, if it changed meanwhile. Tombstones
 * rows absent from it only when two stable passes agree. Resumes at the page after the last one written.
 */
export async function backfillListing(
  deps: ActivityDependencies,
  input: ListingBackfill,
  allowance?: Allowance,
): Promise<RunState> {
  const { db } = deps.warehouse;
  const { now, readBefore } = await startRun(db, input);
  if (!deps.service.has(input.resource)) {
    await finishRun(db, input, 'complete', { error: noEndpoint });
    return 'complete';
  }
  let cursor = resumedCursor(input);
  let before: Pass | undefined;
  let verdict: Verdict = { done: false, state: 'suspect' };
  let pass = cursor.pass;
  if (pass > 1) before = await readPass(deps, input, pass - 1);
  for (; pass <= attemptPolicy.passesMax; pass++) {
    const beganAt = cursor.pass === pass ? now : undefined;
    if (cursor.pass !== pass) cursor = nextPass(cursor, pass);
    const read = await readOnePass(deps, { ...input, beganAt }, cursor, allowance);
    cursor = read.cursor;
    const judged = read.pass ?? (await readPass(deps, input, pass));
    verdict = await conclude(deps, input, before, judged);
    before = judged;
    if (verdict.done) break;
  }
  const { written } = cursor;
  const pages = before?.manifest.length ?? 0;
  const seen = before?.judgement.distinct ?? 0;
  const { state, reason: error, lacksNothing = false } = doubting(verdict, written.older);
  // An attempt that was killed before its heartbeat may have written rows that nothing counts.
  const isFirstTry = Context.current().info.attempt === 1;
  await finishListing(db, input, {
    state,
    error,
    counts: {
      ...written,
      pages,
      passes: Math.min(pass, attemptPolicy.passesMax),
      reportedTotal: before?.judgement.total ?? null,
      distinctIds: seen,
      unchanged: unchangedOf(seen, written),
    },
    graceSeconds: attemptPolicy.eventOnItsWaySeconds,
    lacksNothing,
    mayHaveMissed: readBefore && !(isFirstTry && lacksNothing && written.inserted + written.changed === 0),
  });
  return state;
}

/** Returns where an earlier attempt stopped, if that was in this listing: the activity reads several. */
function resumedCursor({ resource, companyId }: ListingBackfill): Cursor {
  const details = Context.current().info.heartbeatDetails as Partial<Cursor> | undefined;
  const own = details?.resource === resource && details.companyId === companyId;
  const { pass = 1, page = 0, written = nothingWritten } = own ? details : {};
  return { resource, companyId, pass, page, written };
}

/** The cursor at the beginning of a pass, which counts older states anew. */
const nextPass = ({ written: { older: _, ...written }, ...cursor }: Cursor, pass: number): Cursor => ({
  ...cursor,
  pass,
  page: 0,
  written,
});

/**
 * Reads a listing from the cursor to its end. Returns the pass if this attempt read all of it; otherwise the
 * manifest in Postgres has it.
 */
async function readOnePass(
  deps: ActivityDependencies,
  input: ListingBackfill & { readonly beganAt: string | undefined },
  from: Cursor,
  allowance?: Allowance,
): Promise<{ cursor: Cursor; pass?: Pass }> {
  const { db } = deps.warehouse;
  const { companyId, resource } = input;
  const key = { ...input, pass: from.pass };
  let cursor = from;
  const resumed = from.page === 0 ? undefined : (await readManifest(db, key)).pages.at(-1);
  if (resumed?.asked === from.page && !resumed.hasNext) return { cursor };
  let last: PageManifest | undefined;
  const { report, beganAt } = await walkListing(deps, {
    listing: resource,
    companyId,
    params: companyId === null ? {} : { companyId },
    lane: 'backfill',
    from: from.page + 1,
    beganAt: input.beganAt,
    onRead: ({ total }) => {
      // A listing of known length is stopped at its first page or not at all: later the counts would be lost.
      if (cursor.page === 0 || total === null) allowance?.check(total);
    },
    noting: (read) => {
      const pages = read.map(({ page, asked, readAt }) => ({ ...manifestOf(asked, page), readAt }));
      return notingPages(key, pages);
    },
    onWritten: (read, written) => {
      const { page, asked } = read.at(-1) as PageRead;
      last = manifestOf(asked, page);
      cursor = { resource, companyId, pass: from.pass, page: asked, written: sum(from.written, written) };
      return cursor;
    },
  });
  // Adds pages that the walk rejected, and the last page again if the walk found out later that none follows.
  const late = report.manifest.filter(
    (page) =>
      page.asked > cursor.page ||
      page.currentPage !== page.asked ||
      (page.asked === last?.asked && page.hasNext !== last.hasNext),
  );
  if (late.length > 0) {
    const pages = late.map((page) => ({ ...page, readAt: beganAt }));
    await notePages(db, key, pages);
  }
  if (from.page > 0) return { cursor };
  return { cursor, pass: { manifest: report.manifest, judgement: judgePass(report.manifest), beganAt } };
}

async function readPass(deps: ActivityDependencies, input: ListingBackfill, pass: number): Promise<Pass> {
  const { pages, beganAt } = await readManifest(deps.warehouse.db, { ...input, pass });
  return { manifest: pages, judgement: judgePass(pages), beganAt: beganAt ?? '-infinity' };
}

interface Verdict {
  readonly done: boolean;
  readonly state: RunState;
  readonly reason?: string;
  /** Whether no row is absent from the listing. */
  readonly lacksNothing?: boolean;
}

/** Adds records that came in an older state than their rows have: the service may have been restored. */
function doubting(verdict: Verdict, older = 0): Verdict {
  if (older === 0) return verdict;
  const reason = `${older} records are older than their rows, which stay: if the service was restored from a backup, run metersync audit --repair`;
  return {
    ...verdict,
    state: 'suspect',
    reason: verdict.reason === undefined ? reason : `${verdict.reason}; ${reason}`,
  };
}

async function conclude(
  deps: ActivityDependencies,
  input: ListingBackfill,
  before: Pass | undefined,
  now: Pass,
): Promise<Verdict> {
  if (!now.judgement.stable) {
    const reason = `not stable: ${now.judgement.reasons.join('; ')}`;
    return { done: false, state: 'suspect', reason };
  }
  const ids = now.manifest.flatMap((page) => page.ids.filter((id) => id !== null));
  const seen = { ids, beganAt: now.beganAt };
  const agrees = before !== undefined && confirmsPass(before.manifest, now.manifest);
  const agreedSince = agrees ? before.beganAt : undefined;
  const verdict = await judgeAbsent(deps, input, seen, agreedSince);
  if (input.resource !== 'companies') return verdict;
  const ofSites = await judgeSites(deps, input.runId, seen, agreedSince);
  const verdicts = [verdict, ofSites, await judgeGone(deps, input.runId, seen, agreedSince)];
  const reasons = verdicts.flatMap(({ reason }) => reason ?? []);
  return {
    done: verdicts.every(({ done }) => done),
    state: verdicts.find(({ state }) => state !== 'complete')?.state ?? 'complete',
    lacksNothing: verdict.lacksNothing ?? false,
    ...(reasons.length === 0 ? {} : { reason: reasons.join('; ') }),
  };
}

/** `agreedSince` is when the pass began with which a stable one agrees; undefined without such a pass. */
async function judgeAbsent(
  deps: ActivityDependencies,
  input: ListingBackfill,
  { ids, beganAt }: Seen,
  agreedSince: string | undefined,
): Promise<Verdict> {
  const { db } = deps.warehouse;
  const listing = { ...input, configured: deps.companies };
  const { companyId, resource } = input;
  const { live, absent, shared } = await countAbsent(db, listing, { ids, beganAt });
  if (shared && companyId !== null && (ids.length > 0 || live === 0))
    await unlistRecords(db, resource, companyId, ids);
  if (absent === 0) return { done: true, state: 'complete', lacksNothing: true };
  if (agreedSince !== undefined) {
    const seen = { ids, beganAt: agreedSince };
    // An empty listing where rows live is likelier a fault.
    const cap = ids.length === 0 ? onlyExplained : deps.deletesCap;
    const { quarantined, awaited } = await retireAbsent(db, input.runId, listing, seen, cap);
    if (awaited > 0) await wakeFor(deps, input.resource);
    if (quarantined === 0) return { done: true, state: 'complete' };
    const lack =
      ids.length === 0
        ? `the service lists nothing where ${live} rows live`
        : `${quarantined} of ${live} rows are missing from the service`;
    return { done: true, state: 'suspect', reason: `${lack}: ${untilDecided}` };
  }
  const reason = `${absent} rows were absent from one pass and no second one agreed: nothing was tombstoned`;
  return { done: false, state: 'suspect', reason };
}

/** Wakes the catch-up of events that wait for records which are now tombstoned. */
async function wakeFor(deps: ActivityDependencies, resource: ListedResource): Promise<void> {
  if (resource === 'connections' || resource === 'documents') await deps.wake(resource);
}

/**
 * Tombstones sites that their company's record no longer names, once two passes read the same record. A
 * record that names no site at all is likely wrong: its sites are quarantined for somebody to decide. Sites
 * of a company that is gone go with it.
 */
async function judgeSites(
  deps: ActivityDependencies,
  runId: string,
  { ids: companyIds, beganAt }: Seen,
  agreedSince: string | undefined,
): Promise<Verdict> {
  const { db } = deps.warehouse;
  await endSiteDecisions(db, companyIds);
  const companies = await absentSites(db, companyIds, beganAt);
  await clearSiteQuarantine(
    db,
    companyIds,
    companies.map(({ companyId }) => companyId),
  );
  if (companies.length === 0) return { done: true, state: 'complete' };
  let quarantined = 0;
  let doubtful = 0;
  for (const { companyId, named, absent, confirmed } of companies) {
    if (agreedSince === undefined || !confirmed) {
      doubtful += absent;
      continue;
    }
    const seen = { ids: named, beganAt: agreedSince };
    const cap = named.length === 0 ? onlyExplained : deps.deletesCap;
    const retired = await retireAbsent(db, runId, { resource: 'sites', companyId }, seen, cap);
    quarantined += retired.quarantined;
  }
  return verdictOf('sites', 'the records of one pass', doubtful, quarantined);
}

/**
 * Tombstones the records of companies that are gone, once two passes agree that these are. Records that
 * another company lists go to it. An empty list proves nothing about any company.
 */
async function judgeGone(
  deps: ActivityDependencies,
  runId: string,
  { ids: companyIds, beganAt }: Seen,
  agreedSince: string | undefined,
): Promise<Verdict> {
  const { db } = deps.warehouse;
  let quarantined = 0;
  let doubtful = 0;
  // Those of the settings live whether they are listed or not.
  const living = [...companyIds, ...deps.companies];
  const gone = companyIds.length === 0 ? [] : await goneCompanies(db, living);
  for (const listing of await livingOf(db, gone)) {
    await unlistRecords(db, listing.resource, listing.companyId, []);
    if (agreedSince === undefined) {
      doubtful += (await countAbsent(db, listing, { ids: [], beganAt })).absent;
      continue;
    }
    const seen = { ids: [], beganAt: agreedSince };
    const retired = await retireAbsent(db, runId, listing, seen, deps.deletesCap);
    quarantined += retired.quarantined;
    if (retired.awaited > 0) await wakeFor(deps, listing.resource);
  }
  return verdictOf('records of companies that are gone', 'one pass', doubtful, quarantined);
}

function verdictOf(what: string, from: string, doubtful: number, quarantined: number): Verdict {
  if (doubtful > 0) {
    const reason = `${doubtful} ${what} were absent from ${from} and no second one agreed: none of them was tombstoned`;
    return { done: false, state: 'suspect', reason };
  }
  if (quarantined === 0) return { done: true, state: 'complete' };
  const reason = `${quarantined} ${what} are missing from the service: ${untilDecided}`;
  return { done: true, state: 'suspect', reason };
}

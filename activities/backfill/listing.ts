import { attemptPolicy } from '../../contract/retry-policy.ts';
import { counted } from '../../contract/words.ts';
import { finishListing, notePages, readManifest } from '../../db/backfill/manifest.ts';
import { finishRun, startRun } from '../../db/backfill/runs.ts';
import { nothingWritten, type PageWritten, sum, unchangedOf } from '../../db/records/write-page.ts';
import { judgePass, manifestOf, type PageManifest } from '../../service/stability.ts';
import { triesHere } from '../activity-context.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import type { PageRead } from '../reading/walk-listing.ts';
import { walkListing } from '../reading/walk-listing.ts';
import { judgeListing, type ListingBackfill, type Pass, type PassResult } from './absences.ts';
import { cursorIn, type ListingCursor } from './cursor.ts';

/** Why a part of a run read nothing. */
export const noEndpoint = 'the endpoint catalogue has no such endpoint';

/**
 * Reads a listing to its end; again, up to `attemptPolicy.passesMax` passes, if it changed meanwhile. Resumes
 * after the last page written. Tombstones rows absent from it only when two stable passes agree.
 */
export async function backfillListing(deps: ActivityDependencies, input: ListingBackfill): Promise<void> {
  const { db } = deps.warehouse;
  const { now, readBefore } = await startRun(db, input);
  if (!deps.service.has(input.resource)) return await finishRun(db, input, 'complete', { error: noEndpoint });
  const { companyId, resource } = input;
  const reached = cursorIn(companyId);
  const resumed = reached?.resource === resource ? (reached as ListingCursor) : undefined;
  let cursor = resumed ?? { resource, companyId, pass: 1, page: 0, written: nothingWritten };
  let before: Pass | undefined;
  let result: PassResult = { done: false, state: 'suspect' };
  let pass = cursor.pass;
  if (pass > 1) before = await readPass(deps, input, pass - 1);
  for (; pass <= attemptPolicy.passesMax; pass++) {
    const beganAt = cursor.pass === pass ? now : undefined;
    if (cursor.pass !== pass) cursor = nextPass(cursor, pass);
    const read = await readOnePass(deps, { ...input, beganAt }, cursor);
    cursor = read.cursor;
    const judged = read.pass ?? (await readPass(deps, input, pass));
    result = await judgeListing(deps, input, before, judged);
    before = judged;
    if (result.done) break;
  }
  const { written } = cursor;
  const pages = before?.manifest.length ?? 0;
  const seen = before?.judgement.distinct ?? 0;
  const { state, reason: error, provedBegan, lacksNothing = false } = withOlder(result, written);
  // An attempt that was killed before its heartbeat may have written rows that no cursor counts.
  const isFirstTry = triesHere() === 1 && resumed === undefined;
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
    provedBegan,
    lacksNothing,
    mayHaveMissed: readBefore && !(isFirstTry && lacksNothing && written.inserted + written.changed === 0),
  });
}

/** The cursor at the beginning of a pass. Each pass counts older states from zero. */
const nextPass = (
  { written: { older: _, ...written }, ...cursor }: ListingCursor,
  pass: number,
): ListingCursor => ({
  ...cursor,
  pass,
  page: 0,
  written,
});

/** Reads a listing from the cursor. Returns the pass if it read all pages; they are in `metersync.pages`. */
async function readOnePass(
  deps: ActivityDependencies,
  input: ListingBackfill & { readonly beganAt: string | undefined },
  from: ListingCursor,
): Promise<{ cursor: ListingCursor; pass?: Pass }> {
  const { db } = deps.warehouse;
  const { companyId, resource } = input;
  const key = { ...input, pass: from.pass };
  let cursor = from;
  const before = from.page === 0 ? undefined : await readManifest(db, key);
  const resumed = before?.pages.at(-1);
  if (resumed?.asked === from.page && !resumed.hasNext) return { cursor };
  let last: PageManifest | undefined;
  const { report, beganAt } = await walkListing(deps, {
    listing: resource,
    companyId,
    params: companyId === null ? {} : { companyId },
    lane: 'backfill',
    from: from.page + 1,
    beganAt: input.beganAt,
    walkBegan: before?.beganAt ?? undefined,
    note: (read) => {
      const pages = read.map(({ page, asked, readAt }) => ({ ...manifestOf(asked, page), readAt }));
      return notePages(db, key, pages);
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

/** Adds how many records came in an older state: perhaps the service was restored from a backup. */
function withOlder(result: PassResult, { older = 0, reverted = 0 }: PageWritten): PassResult {
  const reasons = [
    ...(result.reason === undefined ? [] : [result.reason]),
    ...(reverted === 0 ? [] : [`${counted(reverted, 'record')} went back to an older state`]),
    ...(older === 0
      ? []
      : [`${counted(older, 'record')} came in an older state than a recent read: the next backfill decides`]),
  ];
  return {
    ...result,
    ...(older === 0 ? {} : { state: 'suspect' }),
    ...(reasons.length === 0 ? {} : { reason: reasons.join('; ') }),
  };
}

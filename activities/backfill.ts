import { Context } from '@temporalio/activity';
import { sql } from 'drizzle-orm';
import type { RunState } from '../contract/names.ts';
import { array } from '../db/arrays.ts';
import { companiesAfter, concludeRun, finishRun, metersAfter, type RunKey, startRun } from '../db/runs.ts';
import { type PageWritten, sum } from '../db/write/write-page.ts';
import { backfillListing, type ListingBackfill } from './backfill-listing.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { asFailure, failing } from './failing.ts';
import { heartbeat } from './heartbeat.ts';
import { readRange } from './intervals.ts';
import { walkListing } from './listing.ts';

/** Meters whose readings one activity reads: it ends with a cursor, so that no activity runs for hours. */
const metersTogether = 25;

/** Where the readings of a company's meters stand: small enough for a history, whatever the number of readings. */
export interface IntervalCursor {
  readonly after: string | null;
  readonly pages: number;
  readonly readings: number;
  readonly written: PageWritten;
  readonly failed: number;
  readonly error: string | null;
}

export interface IntervalBackfill {
  readonly runId: string;
  readonly companyId: string;
  readonly cursor: IntervalCursor;
}

export function backfillActivities(deps: ActivityDependencies) {
  const { db } = deps.warehouse;
  return {
    /** Begins a run and reads the list of companies; only the given ones are noted when there are any. */
    beginRun: failing(async (input: { runId: string; companies: readonly string[] }): Promise<void> => {
      await startRun(db, { runId: input.runId, companyId: null, resource: null });
      await backfillCompanies(deps, input.runId);
      await noteCompanies(deps, [...deps.companies, ...input.companies]);
    }),

    companiesAfter: failing(async (input: { after: string | null; limit: number }): Promise<string[]> => {
      return await companiesAfter(db, input.after, input.limit);
    }),

    backfillListing: failing(
      async (input: ListingBackfill): Promise<RunState> => await backfillListing(deps, input),
    ),

    /** Reads all intervals of the next meters of a company; returns where it stands. */
    backfillIntervals: failing(
      async (input: IntervalBackfill): Promise<{ cursor: IntervalCursor; done: boolean }> =>
        await backfillIntervals(deps, input),
    ),

    failRun: failing(async (input: RunKey & { error: string }): Promise<void> => {
      await startRun(db, input);
      await finishRun(db, input, 'failed', { error: input.error });
    }),

    concludeRun: failing(
      async (input: { runId: string }): Promise<RunState> => await concludeRun(db, input.runId),
    ),
  };
}

async function backfillCompanies(deps: ActivityDependencies, runId: string): Promise<void> {
  const { db } = deps.warehouse;
  const key: RunKey = { runId, companyId: null, resource: 'companies' };
  await startRun(db, key);
  if (!deps.service.has('companies')) {
    await finishRun(db, key, 'complete', { error: 'the endpoint catalogue has no list of companies' });
    return;
  }
  try {
    const { report, written, ids } = await walkListing(deps, {
      listing: 'companies',
      companyId: null,
      params: {},
      lane: 'backfill',
    });
    const unchanged = Math.max(0, ids.length - written.inserted - written.changed);
    const total = report.manifest[0]?.total ?? null;
    const counts = {
      ...written,
      pages: report.pages,
      passes: 1,
      totalSaid: total,
      distinctIds: new Set(ids).size,
    };
    await finishRun(db, key, 'complete', { counts: { ...counts, unchanged, tombstoned: 0 } });
  } catch (error) {
    const failure = asFailure(error);
    if (failure === undefined || failure.code === 'SERVICE_KEY_REFUSED' || failure.action === 'retry')
      throw error;
    // Companies seen in events and configured ones are still read.
    deps.log.warn({ code: failure.code, err: failure }, 'the list of companies cannot be read');
    await finishRun(db, key, 'failed', { error: `${failure.code}: ${failure.message}` });
  }
}

/** Companies that are to be read though no listing told of them. */
async function noteCompanies(deps: ActivityDependencies, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await deps.warehouse.db.execute(sql`
    insert into utility.companies (id) select distinct id from unnest(${array(ids, 'uuid')}) id order by id
    on conflict (id) do nothing`);
}

async function backfillIntervals(
  deps: ActivityDependencies,
  input: IntervalBackfill,
): Promise<{ cursor: IntervalCursor; done: boolean }> {
  const { db } = deps.warehouse;
  const key: RunKey = { ...input, resource: 'intervals' };
  const context = Context.current();
  const details = context.info.heartbeatDetails as IntervalCursor | undefined;
  let cursor = details?.written === undefined ? input.cursor : details;
  if (cursor.after === null) await startRun(db, key);
  const meters = deps.service.has('intervals')
    ? await metersAfter(db, input.companyId, cursor.after, metersTogether)
    : [];
  for (const meterId of meters) {
    cursor = await backfillMeter(deps, meterId, cursor);
    heartbeat(cursor);
  }
  const done = meters.length < metersTogether;
  if (done) await finishIntervals(deps, key, cursor);
  return { cursor, done };
}

async function backfillMeter(
  deps: ActivityDependencies,
  meterId: string,
  cursor: IntervalCursor,
): Promise<IntervalCursor> {
  try {
    const read = await readRange(deps, { meterId }, 'backfill', cursor);
    return {
      ...cursor,
      after: meterId,
      pages: cursor.pages + read.pages,
      readings: cursor.readings + read.readings,
      written: sum(cursor.written, read.written),
    };
  } catch (error) {
    const failure = asFailure(error);
    if (failure?.action !== 'park' || failure.code === 'SERVICE_KEY_REFUSED') throw error;
    // A meter that the service refuses must not keep the others from being read.
    deps.log.warn({ meterId, code: failure.code, err: failure }, 'the intervals of a meter cannot be read');
    return {
      ...cursor,
      after: meterId,
      failed: cursor.failed + 1,
      error: `${failure.code}: ${failure.message}`,
    };
  }
}

async function finishIntervals(
  deps: ActivityDependencies,
  key: RunKey,
  cursor: IntervalCursor,
): Promise<void> {
  const { written, readings } = cursor;
  const unchanged = Math.max(0, readings - written.inserted - written.changed - written.rejected);
  const counts = {
    ...written,
    pages: cursor.pages,
    passes: 1,
    totalSaid: null,
    distinctIds: readings,
    unchanged,
  };
  await finishRun(deps.warehouse.db, key, cursor.failed === 0 ? 'complete' : 'partial', {
    counts: { ...counts, tombstoned: 0 },
    ...(cursor.error === null ? {} : { error: `${cursor.failed} meters: ${cursor.error}` }),
  });
}

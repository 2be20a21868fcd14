import { Context } from '@temporalio/activity';
import { sql } from 'drizzle-orm';
import { Failure } from '../contract/failures.ts';
import {
  type CompanyResource,
  companyResources,
  type RunKind,
  type RunState,
  workflowIds,
} from '../contract/names.ts';
import { array } from '../db/arrays.ts';
import { warehouseNow } from '../db/catch-up.ts';
import {
  companiesAfter,
  concludeRun,
  failRunning,
  finishedResources,
  finishRun,
  metersAfter,
  noteProgress,
  type RunCounts,
  type RunKey,
  startRun,
} from '../db/runs.ts';
import { forgetRejectedReadings } from '../db/write/rejected-records.ts';
import { nothingWritten, type PageWritten, sum } from '../db/write/write-page.ts';
import { atMostEvery } from './at-most-every.ts';
import { backfillListing } from './backfill-listing.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { asFailure, failing } from './failing.ts';
import { heartbeat } from './heartbeat.ts';
import { type RangePlace, type RangeRead, rangeStart, readRange } from './intervals.ts';
import { reviveService } from './parking.ts';

/** Meters whose readings one activity reads: it ends with a cursor, so that no activity runs for hours. */
const metersTogether = 25;

/** How often a meter with many readings tells how far it is: a few times between two looks would be no use to anybody. */
const progressEveryMs = 1_000;

/** Where the readings of a company's meters stand: small enough for a history, whatever the number of readings. */
export interface IntervalCursor {
  readonly resource: 'intervals';
  readonly after: string | null;
  readonly pages: number;
  readonly readings: number;
  readonly written: PageWritten;
  readonly failed: number;
  readonly error: string | null;
  /** Of heartbeats: the meter that is being read, since when, and how far it is. */
  readonly within?: { readonly meterId: string; readonly beganAt: string; readonly place: RangePlace };
}

const firstMeter: IntervalCursor = {
  resource: 'intervals',
  after: null,
  pages: 0,
  readings: 0,
  written: nothingWritten,
  failed: 0,
  error: null,
};

export interface CompanyReading {
  readonly runId: string;
  readonly companyId: string;
  /** Where its meters stand; null before the first of them. */
  readonly cursor: IntervalCursor | null;
}

/** What is left to read: when not done, the activity is called again with the cursor. */
export interface CompanyStep {
  readonly done: boolean;
  readonly cursor: IntervalCursor | null;
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

    /**
     * Reads what the service has of a company, resource by resource, less what the run has already finished. What the
     * service refuses for good fails that resource alone; what passes is retried by Temporal.
     */
    readCompany: failing(
      async (input: CompanyReading): Promise<CompanyStep> => await readCompany(deps, input),
    ),

    /** Fails, for Temporal to try again, while another run reads the company. */
    awaitTurn: failing(async ({ companyId }: { companyId: string }): Promise<void> => {
      if (await deps.isRunning(workflowIds.backfillCompany(companyId)))
        throw new Failure('COMPANY_BUSY', `another run is reading the company ${companyId}`);
    }),

    /** Fails the resource of a company that could not be read however often it was tried; whether any is left. */
    giveUpResource: failing(
      async (input: { runId: string; companyId: string; error: string }): Promise<{ done: boolean }> => {
        const [resource, ...left] = await unfinished(deps, input);
        if (resource === undefined) return { done: true };
        await failRun(deps, { ...input, resource }, input.error);
        return { done: left.length === 0 };
      },
    ),

    /** Fails a part of a run; or all of it, with the parts that nobody reads any more. */
    failRun: failing(async (input: RunKey & { error: string; kind?: RunKind }): Promise<void> => {
      if (input.companyId === null && input.resource === null)
        await failRunning(db, input.runId, input.error);
      await failRun(deps, input, input.error, input.kind);
    }),

    concludeRun: failing(
      async (input: { runId: string }): Promise<RunState> => await concludeRun(db, input.runId),
    ),
  };
}

async function backfillCompanies(deps: ActivityDependencies, runId: string): Promise<void> {
  const key = { runId, companyId: null, resource: 'companies' } as const;
  try {
    await backfillListing(deps, key);
    if (deps.service.has('companies')) await reviveService(deps);
  } catch (error) {
    const failure = asFailure(error);
    if (failure === undefined || failure.action === 'retry') throw error;
    await failRun(deps, key, `${failure.code}: ${failure.message}`);
    if (failure.code === 'SERVICE_KEY_REFUSED') throw error;
    // Companies seen in events and configured ones are still read.
    deps.log.warn({ code: failure.code, err: failure }, 'the list of companies cannot be read');
  }
}

/** Companies that are to be read though no listing told of them. */
async function noteCompanies(deps: ActivityDependencies, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await deps.warehouse.db.execute(sql`
    insert into utility.companies (id) select distinct id from unnest(${array(ids, 'uuid')}) id order by id
    on conflict (id) do nothing`);
}

async function failRun(
  deps: ActivityDependencies,
  key: RunKey,
  error: string,
  kind?: RunKind,
): Promise<void> {
  await startRun(deps.warehouse.db, key, kind);
  await finishRun(deps.warehouse.db, key, 'failed', { error });
}

/** Resources of the company that the run has still to read, in their order. */
async function unfinished(
  deps: ActivityDependencies,
  { runId, companyId }: { runId: string; companyId: string },
): Promise<CompanyResource[]> {
  const finished = await finishedResources(deps.warehouse.db, runId, companyId);
  return companyResources.filter((resource) => !finished.includes(resource));
}

async function readCompany(deps: ActivityDependencies, input: CompanyReading): Promise<CompanyStep> {
  const { runId, companyId } = input;
  for (const resource of await unfinished(deps, input)) {
    const key = { runId, companyId, resource };
    try {
      if (resource === 'intervals') return await readMeters(deps, input);
      await backfillListing(deps, { ...key, resource });
    } catch (error) {
      Context.current().cancellationSignal.throwIfAborted();
      const failure = asFailure(error);
      if (failure === undefined || failure.action === 'retry') throw error;
      const reason = `${failure.code}: ${failure.message}`;
      if (failure.code === 'SERVICE_KEY_REFUSED') return await giveUp(deps, input, reason);
      await failRun(deps, key, reason);
    }
  }
  return { done: true, cursor: null };
}

/** Fails what the run has still to read of a company: the key is refused for all of it alike. */
async function giveUp(
  deps: ActivityDependencies,
  input: CompanyReading,
  reason: string,
): Promise<CompanyStep> {
  const { runId, companyId } = input;
  for (const resource of await unfinished(deps, input)) {
    await failRun(deps, { runId, companyId, resource }, reason);
  }
  return { done: true, cursor: null };
}

/** Reads all intervals of the company's next meters. */
async function readMeters(
  deps: ActivityDependencies,
  { runId, companyId, cursor: given }: CompanyReading,
): Promise<CompanyStep> {
  const { db } = deps.warehouse;
  const key: RunKey = { runId, companyId, resource: 'intervals' };
  const details = Context.current().info.heartbeatDetails as Partial<IntervalCursor> | undefined;
  let cursor = (details?.resource === 'intervals' ? (details as IntervalCursor) : given) ?? firstMeter;
  if (cursor.after === null) await startRun(db, key);
  const meters = deps.service.has('intervals')
    ? await metersAfter(db, companyId, cursor.after, metersTogether)
    : [];
  const within = atMostEvery(progressEveryMs, deps.now, (counts: RunCounts) => noteProgress(db, key, counts));
  for (const meterId of meters) {
    cursor = await backfillMeter(deps, meterId, cursor, within);
    heartbeat(cursor);
    await noteProgress(db, key, intervalCounts(cursor));
  }
  const done = meters.length < metersTogether;
  if (done) await finishIntervals(deps, key, cursor);
  return { done, cursor: done ? null : cursor };
}

async function backfillMeter(
  deps: ActivityDependencies,
  meterId: string,
  { within, ...done }: IntervalCursor,
  note: (counts: RunCounts) => Promise<void>,
): Promise<IntervalCursor> {
  const interrupted = within?.meterId === meterId ? within : undefined;
  const onWritten = async ({ page, readings, written, total }: RangePlace) =>
    await note({
      ...intervalCounts(withMeter(done, { pages: page, readings, written })),
      ...{ distinctIds: readings, totalSaid: total },
    });
  try {
    const read = await readMeter(deps, meterId, { done, interrupted, onWritten });
    return { ...withMeter(done, read), after: meterId };
  } catch (error) {
    const failure = asFailure(error);
    if (failure?.action !== 'park' || failure.code === 'SERVICE_KEY_REFUSED') throw error;
    // A meter that the service refuses must not keep the others from being read.
    deps.log.warn({ meterId, code: failure.code, err: failure }, 'the intervals of a meter cannot be read');
    return {
      ...done,
      after: meterId,
      failed: done.failed + 1,
      error: `${failure.code}: ${failure.message}`,
    };
  }
}

const withMeter = (
  done: IntervalCursor,
  { pages, readings, written }: Pick<RangeRead, 'pages' | 'readings' | 'written'>,
): IntervalCursor => ({
  ...done,
  pages: done.pages + pages,
  readings: done.readings + readings,
  written: sum(done.written, written),
});

/** What is known of a meter before it is read, and who is told how far that is. */
interface MeterReading {
  readonly done: IntervalCursor;
  readonly interrupted: IntervalCursor['within'];
  readonly onWritten: (place: RangePlace) => Promise<void>;
}

/** Reads a meter, behind what an interrupted attempt wrote; all of it again where it changed since. */
async function readMeter(
  deps: ActivityDependencies,
  meterId: string,
  { done, interrupted, onWritten }: MeterReading,
): Promise<RangeRead> {
  const { db } = deps.warehouse;
  const beganAt = interrupted?.beganAt ?? (await warehouseNow(db));
  const read = await readRange(
    deps,
    { meterId },
    {
      lane: 'backfill',
      from: interrupted?.place ?? rangeStart,
      cursor: (place): IntervalCursor => ({ ...done, within: { meterId, beganAt, place } }),
      onWritten,
    },
  );
  if (interrupted !== undefined && !(read.whole && read.total === interrupted.place.total)) {
    return await readMeter(deps, meterId, { done, interrupted: undefined, onWritten });
  }
  if (read.whole) await forgetRejectedReadings(db, { meterId }, beganAt);
  return read;
}

async function finishIntervals(
  deps: ActivityDependencies,
  key: RunKey,
  cursor: IntervalCursor,
): Promise<void> {
  const counts = intervalCounts(cursor);
  await finishRun(deps.warehouse.db, key, cursor.failed === 0 ? 'complete' : 'partial', {
    counts,
    ...(cursor.error === null ? {} : { error: `${cursor.failed} meters: ${cursor.error}` }),
  });
}

function intervalCounts({ written, readings, pages }: IntervalCursor): RunCounts {
  const unchanged = Math.max(0, readings - written.inserted - written.changed - written.rejected);
  return { ...written, pages, passes: 1, totalSaid: null, distinctIds: readings, unchanged, tombstoned: 0 };
}

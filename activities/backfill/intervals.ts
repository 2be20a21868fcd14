import type PQueue from 'p-queue';
import { batches } from '../../contract/limits.ts';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import { agreeing, counted, isUntilDecided, untilDecided } from '../../contract/words.ts';
import { metersAfter } from '../../db/backfill/run-companies.ts';
import {
  finishRun,
  notePartsMissing,
  noteProgress,
  type RunCounts,
  type RunKey,
  startRun,
} from '../../db/backfill/runs.ts';
import { withoutStatement } from '../../db/connection/failures.ts';
import { clearRejectedReadings } from '../../db/records/rejected.ts';
import { nothingWritten, sum } from '../../db/records/write-page.ts';
import { cancellation, noteCursor, triesHere } from '../activity-context.ts';
import { atMostEvery } from '../at-most-every.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { asFailure } from '../map-failures.ts';
import { ownFailure } from '../own-failure.ts';
import type { PassPlace } from '../reading/listing-pass.ts';
import { type RangeRead, readRange } from '../reading/read-range.ts';
import { cursorIn, type IntervalCursor } from './cursor.ts';

/** How many failed meters a run names at most. */
const failedMetersNamed = 10;

const firstMeter: Omit<IntervalCursor, 'companyId'> = {
  resource: 'intervals',
  after: null,
  pages: 0,
  readings: 0,
  written: nothingWritten,
  reportedTotal: null,
  removed: 0,
  heldBack: 0,
  failed: 0,
  failedMeters: [],
  error: null,
  suspect: 0,
  doubt: null,
};

type IntervalsPart = RunKey & { readonly companyId: string };

/** Admits only some meters at a time, because the readings of a meter are held in memory. */
export type MeterTurns = PQueue;

/** Reads all intervals of the company's meters, from where an earlier attempt stopped. */
export async function backfillIntervals(
  deps: ActivityDependencies,
  key: IntervalsPart,
  turns: MeterTurns,
): Promise<void> {
  const { db } = deps.warehouse;
  const { companyId } = key;
  if (!deps.service.has('intervals')) {
    return await notePartsMissing(db, key, ['intervals'], null);
  }
  const reached = cursorIn(companyId);
  let cursor: IntervalCursor = {
    ...firstMeter,
    ...(reached?.resource === 'intervals' ? reached : {}),
    companyId,
  };
  let { now } = await startRun(db, key);
  const within = atMostEvery(attemptPolicy.progressEveryMs, deps.now, async (counts: RunCounts) => {
    await noteProgress(db, key, counts);
  });
  for (;;) {
    const meters = await metersAfter(db, companyId, cursor.after, batches.meters);
    for (const meterId of meters) {
      const meter = { key, meterId, now };
      cursor = await turns.add(() => backfillMeter(deps, meter, cursor, within), { signal: cancellation() });
      noteCursor(cursor);
      now = (await noteProgress(db, key, intervalCounts(cursor))) ?? now;
    }
    if (meters.length < batches.meters) break;
  }
  await finishIntervals(deps, key, cursor);
}

async function backfillMeter(
  deps: ActivityDependencies,
  { key, meterId, now }: { readonly key: RunKey; readonly meterId: string; readonly now: string },
  done: IntervalCursor,
  note: (counts: RunCounts) => Promise<void>,
): Promise<IntervalCursor> {
  const { runId } = key;
  const onPage = async ({ sent, total }: PassPlace) => {
    await note({ ...intervalCounts(done), distinctIds: sent.readings, reportedTotal: total });
  };
  try {
    const read = await readRange(deps, { meterId }, { lane: 'backfill', runId, onPage });
    if (read.complete) await clearRejectedReadings(deps.warehouse.db, { meterId }, now);
    return { ...withMeter(done, read), ...judged(meterId, done, read), after: meterId };
  } catch (error) {
    cancellation().throwIfAborted();
    if (triesHere() < attemptPolicy.meterTries && asFailure(error)?.action === 'retry') throw error;
    const reason = await ownFailure(deps, error);
    if (reason === undefined || reason.code === 'SERVICE_KEY_REFUSED') throw error;
    // One meter that cannot be read must not prevent the others from being read.
    const { code } = reason;
    deps.log.warn({ meterId, code, err: withoutStatement(error) }, 'the intervals of a meter cannot be read');
    const failedMeters = [...done.failedMeters, meterId].slice(0, failedMetersNamed);
    return { ...done, after: meterId, failed: done.failed + 1, failedMeters, error: reason.message };
  }
}

const withMeter = (done: IntervalCursor, { pages, readings, written }: RangeRead): IntervalCursor => ({
  ...done,
  pages: done.pages + pages,
  readings: done.readings + readings,
  written: sum(done.written, written),
});

/** Counts a meter as suspect if its listing is incomplete, contradicts itself, or lacks many readings. */
function judged(
  meterId: string,
  done: IntervalCursor,
  { complete, unstable, readings, total, removed, heldBack }: RangeRead,
): Pick<IntervalCursor, 'reportedTotal' | 'removed' | 'heldBack' | 'suspect' | 'doubt'> {
  const counts = {
    reportedTotal: total === null ? done.reportedTotal : (done.reportedTotal ?? 0) + total,
    removed: done.removed + removed,
    heldBack: done.heldBack + heldBack,
  };
  let doubt: string | null = null;
  if (total !== null && readings < total)
    doubt = `shows ${readings} of the ${counted(total, 'reading')} of its total`;
  else if (unstable) doubt = 'showed readings that changed from pass to pass';
  else if (!complete) doubt = 'showed no end of the readings';
  else if (heldBack > 0) doubt = `no longer lists ${counted(heldBack, 'reading')}: ${untilDecided}`;
  if (doubt === null) return { ...counts, suspect: done.suspect, doubt: done.doubt };
  const reason = `of meter ${meterId} the service ${doubt}`;
  // If the run is also suspect for another reason, it waits for more than a decision.
  const waits = done.doubt === null || isUntilDecided(done.doubt);
  return { ...counts, suspect: done.suspect + 1, doubt: waits ? reason : done.doubt };
}

async function finishIntervals(
  deps: ActivityDependencies,
  key: RunKey,
  cursor: IntervalCursor,
): Promise<void> {
  const { failed, error, suspect, doubt, reportedTotal } = cursor;
  const reasons = [
    ...(error === null ? [] : [`${counted(failed, 'meter')}: ${error} (${named(cursor)})`]),
    ...(doubt === null
      ? []
      : [`${counted(suspect, 'meter')} ${agreeing(suspect, 'is', 'are')} in doubt: ${doubt}`]),
  ];
  await finishRun(deps.warehouse.db, key, failed > 0 ? 'partial' : suspect > 0 ? 'suspect' : 'complete', {
    counts: { ...intervalCounts(cursor), reportedTotal },
    ...(reasons.length === 0 ? {} : { error: reasons.join('; ') }),
  });
}

const named = ({ failed, failedMeters }: IntervalCursor): string =>
  [...failedMeters, ...(failed > failedMeters.length ? ['…'] : [])].join(', ');

function intervalCounts({ written, readings, pages, removed }: IntervalCursor): RunCounts {
  const unchanged = Math.max(0, readings - written.inserted - written.changed - written.rejected);
  const none = { passes: 1, reportedTotal: null };
  return { ...written, ...none, tombstoned: removed, pages, distinctIds: readings, unchanged };
}

import { randomUUID } from 'node:crypto';
import { batches } from '../../contract/limits.ts';
import {
  companyOfMeter,
  type DueRange,
  dueRanges,
  nextPiece,
  nextWidth,
  type RangeProgress,
  settleRanges,
} from '../../db/events/ranges.ts';
import { postpone } from '../../db/queue/postpone.ts';
import { pendingOf } from '../../db/queue/queue.ts';
import type { Granularity } from '../../db/readings/ranges.ts';
import { clearRejectedReadings } from '../../db/records/rejected.ts';
import { noteCursor, resumedCursor } from '../activity-context.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { asFailure } from '../map-failures.ts';
import { readRange } from '../reading/read-range.ts';
import { walkListing } from '../reading/walk-listing.ts';

/** Where the read of a meter continues. All readings before this place are in the warehouse. */
interface MeterCursor {
  readonly meterId: string;
  /** Names the notes about readings that are held back; no run has it. */
  readonly runId: string;
  readonly readAt: string;
  readonly ranges: readonly DueRange[];
  readonly granularity: Granularity;
  readonly range: number;
  /** Place within the range; absent at its start. */
  readonly within?: RangeProgress | undefined;
  /** Ranges that changed while they were read; absent without any. */
  readonly unstable?: readonly number[] | undefined;
  /** See `DueRanges`. */
  readonly known: boolean;
  readonly anyRefused: boolean;
}

/**
 * Reads the announced ranges of a meter in pieces, and resumes behind the last piece written. The next
 * catch-up reads ranges that are announced meanwhile. A range that changes while it is read is read again later.
 */
export async function catchUpIntervals(deps: ActivityDependencies, meterId: string): Promise<void> {
  const { db } = deps.warehouse;
  let cursor = interrupted(meterId) ?? (await begin(deps, meterId));
  const { readAt, ranges } = cursor;
  for (; cursor.range < ranges.length; cursor = { ...cursor, range: cursor.range + 1, within: undefined }) {
    const range = ranges[cursor.range] as (typeof ranges)[number];
    for (let at: RangeProgress | null = cursor.within ?? { from: range.start, width: 1 }; at !== null; ) {
      cursor = { ...cursor, within: at };
      const next: Next = await readPiece(deps, cursor, range, at);
      if (next === 'unstable') cursor = { ...cursor, unstable: [...(cursor.unstable ?? []), cursor.range] };
      at = next === 'unstable' ? null : next;
      noteCursor(
        at === null ? { ...cursor, range: cursor.range + 1, within: undefined } : { ...cursor, within: at },
      );
    }
  }
  const { unstable } = cursor;
  const read = ranges.filter((_, place) => unstable?.includes(place) !== true);
  if (cursor.anyRefused)
    for (const { start, end } of read) await clearRejectedReadings(db, { meterId, start, end }, readAt);
  if (!cursor.known) await readMeter(deps, meterId);
  const { short } = await settleRanges(db, meterId, readAt, read);
  for (const { id, reported, found, waits } of short) {
    const next = waits ? 'they are read again' : 'see metersync.interval_ledger';
    deps.log.warn({ meterId, event: id, reported, found }, `fewer readings than an event reported: ${next}`);
  }
  if (unstable === undefined) return;
  const message = 'the readings of a range change while they are read';
  const reason = { code: 'LISTING_UNSTABLE', message } as const;
  await postpone(db, pendingOf.owner('intervals', meterId), reason, { readAt });
}

/** Where a range continues; null at its end; `unstable` if the piece changed while it was read. */
type Next = RangeProgress | null | 'unstable';

/**
 * Reads a piece of a range. A range of one piece is recent data, and is read with the priority of live data.
 * If a piece that is wider than usual cannot be read, it is read again at the usual width.
 */
async function readPiece(
  deps: ActivityDependencies,
  cursor: MeterCursor,
  range: MeterCursor['ranges'][number],
  at: RangeProgress,
): Promise<Next> {
  const { meterId, granularity, runId } = cursor;
  const { piece, next } = await nextPiece(deps.warehouse.db, range, at, granularity, batches.readingsOfPiece);
  const isNews = next === null && at.from === range.start;
  const lane = isNews ? 'live' : 'backfill';
  try {
    const { complete, readings } = await readRange(deps, { meterId, ...piece }, { lane, runId });
    if (!complete) return 'unstable';
    const width = nextWidth(at.width, readings, batches.readingsOfPiece);
    return next === null ? null : { from: next, width };
  } catch (error) {
    if (at.width === 1 || asFailure(error)?.code !== 'SERVICE_ANSWER_UNREADABLE') throw error;
    return { from: at.from, width: 1 };
  }
}

async function begin(deps: ActivityDependencies, meterId: string): Promise<MeterCursor> {
  const runId = randomUUID();
  return { meterId, runId, ...(await dueRanges(deps.warehouse.db, meterId, batches.ranges)), range: 0 };
}

function interrupted(meterId: string): MeterCursor | undefined {
  const cursor = resumedCursor() as Partial<MeterCursor> | undefined;
  return cursor?.meterId === meterId && cursor.runId !== undefined ? (cursor as MeterCursor) : undefined;
}

/** Reads a meter that so far only events named. It is read from the listing of its company. */
async function readMeter(deps: ActivityDependencies, meterId: string): Promise<void> {
  const { companyId, known } = await companyOfMeter(deps.warehouse.db, meterId);
  if (known || companyId === null || !deps.service.has('meters')) return;
  await walkListing(deps, { listing: 'meters', companyId, params: { companyId }, lane: 'live' });
}

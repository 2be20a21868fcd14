import { Context } from '@temporalio/activity';
import { parkOwner, warehouseNow } from '../db/catch-up.ts';
import {
  companyOfMeter,
  dueRanges,
  type Granularity,
  settleRanges,
  splitRange,
  type TimeRange,
} from '../db/interval-ledger.ts';
import { forgetRejectedReadings } from '../db/write/rejected-records.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { heartbeat } from './heartbeat.ts';
import { readRange } from './intervals.ts';
import { walkListing } from './listing.ts';

/** Ranges of a meter that one pass reads: they travel in its heartbeats. */
const rangesTogether = 50;
/** Readings that one piece of a range holds at most, where the service sends all of them as one page, and pieces. */
const pieces = { readings: 20_000, piecesMax: 200 } as const;

/** Where a meter stands: pieces before this one are in the warehouse. */
interface MeterCursor {
  readonly meterId: string;
  readonly readAt: string;
  readonly ranges: readonly TimeRange[];
  readonly granularity: Granularity;
  readonly range: number;
  readonly piece: number;
}

/**
 * Fetches what was announced of a meter, piece by piece, and goes on behind the last piece that was written when an
 * attempt before was interrupted. What is announced meanwhile is another fetch.
 */
export async function catchUpIntervals(deps: ActivityDependencies, meterId: string): Promise<void> {
  const { db } = deps.warehouse;
  let cursor = interrupted(meterId) ?? (await begin(deps, meterId));
  const { readAt, ranges, granularity } = cursor;
  for (let range = cursor.range; range < ranges.length; range++) {
    const parts = await splitRange(db, ranges[range] as TimeRange, granularity, pieces);
    for (let piece = cursor.range === range ? cursor.piece : 0; piece < parts.length; piece++) {
      cursor = { ...cursor, range, piece };
      const here = cursor;
      const asked = { meterId, ...(parts[piece] as TimeRange) };
      const { whole } = await readRange(deps, asked, { lane: 'live', cursor: () => here });
      if (!whole) {
        const message = 'the readings of a range change while they are read';
        await parkOwner(db, 'intervals', meterId, { code: 'LISTING_UNSTABLE', message });
        return;
      }
      cursor = { ...cursor, piece: piece + 1 };
      heartbeat(cursor);
    }
  }
  for (const range of ranges) await forgetRejectedReadings(db, { meterId, ...range }, readAt);
  await readMeter(deps, meterId);
  const { short } = await settleRanges(db, meterId, readAt, ranges);
  for (const { id, told, found, waits } of short) {
    const next = waits ? 'they are looked for again' : 'see metersync.interval_ledger';
    deps.log.warn({ meterId, event: id, told, found }, `fewer readings than an event told of: ${next}`);
  }
}

async function begin(deps: ActivityDependencies, meterId: string): Promise<MeterCursor> {
  const { db } = deps.warehouse;
  const readAt = await warehouseNow(db);
  return { meterId, readAt, ...(await dueRanges(db, meterId, rangesTogether)), range: 0, piece: 0 };
}

function interrupted(meterId: string): MeterCursor | undefined {
  const cursor = Context.current().info.heartbeatDetails as Partial<MeterCursor> | undefined;
  return cursor?.meterId === meterId ? (cursor as MeterCursor) : undefined;
}

/** A meter that events alone told of is read from its company's listing. */
async function readMeter(deps: ActivityDependencies, meterId: string): Promise<void> {
  const { companyId, known } = await companyOfMeter(deps.warehouse.db, meterId);
  if (known || companyId === null || !deps.service.has('meters')) return;
  await walkListing(deps, { listing: 'meters', companyId, params: { companyId }, lane: 'live' });
}

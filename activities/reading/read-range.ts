import { Context } from '@temporalio/activity';
import { batches } from '../../contract/limits.ts';
import { warehouseNow } from '../../db/catch-up/due.ts';
import { noteFetched } from '../../db/catch-up/interval-ledger.ts';
import { type IntervalColumns, sliceOf } from '../../db/records/interval-text.ts';
import { writeIntervals } from '../../db/records/intervals.ts';
import { type RejectedRecord, rejectRecords } from '../../db/records/rejected-records.ts';
import { nothingWritten, type PageWritten, sum } from '../../db/records/write-page.ts';
import {
  type IntervalColumns as ListedColumns,
  noIntervals,
  readIntervals,
} from '../../service/intervals.ts';
import { walkPages } from '../../service/walk.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { noteCursor } from '../heartbeat.ts';
import { noteFields } from './page-write.ts';
import { type IntervalRange, removeReplaced } from './replaced-readings.ts';
import { noteWritten } from './rows-written.ts';
import { type Seen, seenReadings } from './seen-readings.ts';
import { divideReadings, type Stray } from './stray-readings.ts';

/** How far a range is read: the readings up to this page are in the warehouse. */
export interface RangePlace {
  /** Number of that page; 0 before the first. */
  readonly page: number;
  readonly readings: number;
  /** The service's total of readings, the largest of its pages. */
  readonly total: number | null;
  readonly written: PageWritten;
  readonly seen?: Seen | undefined;
}

export const rangeStart: RangePlace = { page: 0, readings: 0, total: null, written: nothingWritten };

export interface RangeReading {
  readonly lane: 'live' | 'backfill';
  /** Whether events announced the readings: then unchanged ones count as read now, too. */
  readonly confirms?: boolean;
  /** The warehouse's clock before the read; read when absent. */
  readonly beganAt?: string | undefined;
  /** Where an interrupted attempt stopped. */
  readonly from?: RangePlace;
  /** Makes the details from which another attempt resumes. */
  readonly cursor: (place: RangePlace) => unknown;
  /** Called with the place whenever readings were written. */
  readonly onWritten?: (place: RangePlace) => Promise<void>;
}

export interface RangeRead {
  readonly written: PageWritten;
  readonly pages: number;
  readonly readings: number;
  readonly total: number | null;
  /**
   * Whether the listing was read to its end, had as many readings as its total, and none on two pages: then the
   * ledger has the range.
   */
  readonly complete: boolean;
  /** Whether it is not, as a reading came on two pages. */
  readonly repeated: boolean;
}

/** Reads a range of a meter's intervals and writes it, a bounded number of readings at a time. */
export async function readRange(
  deps: ActivityDependencies,
  range: IntervalRange,
  { lane, confirms = false, beganAt, from = rangeStart, cursor, onWritten }: RangeReading,
): Promise<RangeRead> {
  const { warehouse } = deps;
  const context = Context.current();
  const walkOf = ({ meterId, start, end }: IntervalRange, page: number) =>
    walkPages({
      client: deps.service,
      endpoint: 'intervals',
      params: { meterId, ...(start === undefined ? {} : { start }), ...(end === undefined ? {} : { end }) },
      from: page,
      lane,
      signal: context.cancellationSignal,
      judged: false,
    });
  const walk = walkOf(range, from.page + 1);
  const seen = seenReadings(from.seen);
  let place = from;
  let { written } = from;
  let readAt = beganAt ?? (await warehouseNow(warehouse.db));
  let waiting = noIntervals();
  let { total } = from;
  const flush = async () => {
    for (let at = 0; at < waiting.startAt.length; at += batches.readingsWritten) {
      const slice = sliceOf(waiting, at, at + batches.readingsWritten);
      const added = await writeIntervals(warehouse, range.meterId, readAt, slice, { confirms });
      noteWritten(deps, 'intervals', added);
      written = sum(written, added);
      noteCursor(cursor(place));
      await onWritten?.({ ...place, readings: place.readings + at + slice.startAt.length, total, written });
    }
    waiting = noIntervals();
    const { pages, rows } = walk.report();
    const readings = from.readings + rows;
    place = { page: from.page + pages, readings, total, written, seen: seen.soFar() };
  };
  for await (const page of walk) {
    await noteFields(deps, 'intervals', page.items);
    const columns = readIntervals(page.body, page.itemsKey, page.items);
    seen.add(columns);
    const { own, strays } = divideReadings(range.meterId, page, columns);
    append(waiting, own);
    if (strays.length > 0) {
      await rejectRecords(warehouse.db, strays.map(refusalOf));
      const rejected = { ...nothingWritten, rejected: strays.length };
      noteWritten(deps, 'intervals', rejected);
      written = sum(written, rejected);
    }
    // One that shrinks means a deletion, which may have moved a reading to a page that was read.
    if (page.total !== null) total = Math.max(total ?? 0, page.total);
    noteCursor(cursor(place));
    if (waiting.startAt.length < batches.readingsWritten) continue;
    await flush();
    if (page.hasNext) readAt = await warehouseNow(warehouse.db);
  }
  await flush();
  const { page: pages, readings } = place;
  const repeated = place.seen?.repeated === true;
  const complete = walk.report().ended === 'last' && (total === null || readings >= total) && !repeated;
  if (complete) {
    const listed = { range, readings: readings - written.rejected, seen: place.seen };
    await removeReplaced(deps, listed, (wider) => walkOf(wider, 1));
    await noteFetched(warehouse.db, range);
  }
  return { written, pages, readings, total, complete, repeated };
}

const refusalOf = ({ reason, ...stray }: Stray): RejectedRecord => ({
  ...stray,
  resource: 'intervals',
  companyId: null,
  error: reason,
});

/** Adds readings of the meter. */
function append(to: ListedColumns, more: IntervalColumns): void {
  for (const [at, start] of more.startAt.entries()) {
    to.startAt.push(start);
    to.endAt.push(more.endAt[at] ?? null);
    to.usage.push(more.usage[at] ?? null);
    to.usageUnits.push(more.usageUnits[at] ?? null);
    to.quality.push(more.quality[at] ?? null);
    to.updated.push(more.updated[at] ?? null);
    to.granularitySeconds.push(more.granularitySeconds[at] ?? null);
  }
}

import { batches } from '../../contract/limits.ts';
import { clearNotes } from '../../db/deletes/absent-readings.ts';
import { warehouseNow } from '../../db/events/due.ts';
import type { ReadRange, Span } from '../../db/records/interval-key.ts';
import { noteFetched } from '../../db/records/interval-ledger.ts';
import { sliceOf } from '../../db/records/interval-text.ts';
import { hasReadingsOutside, writeIntervals } from '../../db/records/intervals.ts';
import { widened } from '../../db/records/listed-readings.ts';
import { rejectRecords } from '../../db/records/rejected-records.ts';
import { nothingWritten, type PageWritten, sum } from '../../db/records/write-page.ts';
import { type ListedIntervals, noIntervals, readIntervals } from '../../service/intervals.ts';
import type { Page } from '../../service/page.ts';
import { type Walk, walkPages } from '../../service/walk.ts';
import { cancellation } from '../cancellation.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { noteCursor } from '../heartbeat.ts';
import { noteFields } from './page-write.ts';
import { replaceRange } from './replace-range.ts';
import { noteWritten } from './rows-written.ts';
import { divideReadings, refusalOf } from './stray-readings.ts';

export interface IntervalRange extends ReadRange {
  readonly meterId: string;
}

/** How far a range is read: the readings up to this page are in the warehouse. */
export interface RangePlace {
  /** Number of that page; 0 before the first. */
  readonly page: number;
  readonly readings: number;
  /** The service's total of readings, the largest of its pages. */
  readonly total: number | null;
  readonly written: PageWritten;
  /** What the pages cover; absent before the first reading. */
  readonly span?: Span | undefined;
  /** Whether a page contradicts the warehouse or another page: see `ReadingsWritten`. */
  readonly inDoubt?: boolean;
  /** The warehouse's clock before the first page; absent in cursors of an older version. */
  readonly beganAt?: string;
}

export const rangeStart: RangePlace = { page: 0, readings: 0, total: null, written: nothingWritten };

export interface RangeReading {
  readonly lane: 'live' | 'backfill';
  /** Names the notes about readings that are removed or held back. */
  readonly runId: string;
  /** Whether events announced the readings. Then unchanged readings also count as read now. */
  readonly confirms?: boolean;
  /** The warehouse's clock before the read. If it is absent, the clock is read first. */
  readonly beganAt?: string | undefined;
  /** Where an interrupted attempt stopped. */
  readonly from?: RangePlace;
  /** Lets only a few compare a whole listing at the same time, because each uses a connection meanwhile. */
  readonly inTurn?: <T>(work: () => Promise<T>) => Promise<T>;
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
  /** Whether the listing was complete and the warehouse has its readings, apart from deletions that are held back. */
  readonly complete: boolean;
  /** Whether the range is not complete because passes over the listing contradict one another. */
  readonly unstable: boolean;
  readonly removed: number;
  readonly heldBack: number;
}

/**
 * Reads a range of a meter's intervals and replaces what the warehouse has of it, page by page. If a page
 * contradicts the warehouse or another page, the whole listing is compared: see `replaceRange`.
 */
export async function readRange(
  deps: ActivityDependencies,
  range: IntervalRange,
  reading: RangeReading,
): Promise<RangeRead> {
  const { warehouse } = deps;
  const { meterId } = range;
  const { from = rangeStart } = reading;
  const readAt = reading.beganAt ?? (await warehouseNow(warehouse.db));
  const beganAt = from.beganAt ?? readAt;
  const walk = walkOf(deps, range, from.page + 1, reading.lane);
  const { place, ended } = await writePages(
    deps,
    range,
    walk,
    { ...reading, from: { ...from, beganAt } },
    readAt,
  );
  const { page: pages, readings, total, written, span } = place;
  const read = { written, pages, readings, total, unstable: false, removed: 0, heldBack: 0 };
  if (place.inDoubt !== true) {
    if (ended !== 'last' || (total !== null && readings < total)) return { ...read, complete: false };
    const outside = { meterId, range, readAt };
    const isSame = !(await hasReadingsOutside(warehouse.db, outside, span));
    if (isSame && !(await noteFetched(warehouse.db, range, beganAt))) {
      await clearNotes(warehouse.db, meterId, range);
      return { ...read, complete: true };
    }
  }
  const wider = await widened(warehouse.db, range);
  const { inTurn = (work) => work(), runId, lane, cursor } = reading;
  const replaced = await inTurn(() =>
    replaceRange(deps, wider, {
      runId,
      cap: deps.deletesCap,
      walk: () => walkOf(deps, wider, 1, lane),
      onPage: () => noteCursor(cursor(place)),
    }),
  );
  noteWritten(deps, 'intervals', replaced.written);
  const { proved, removed, heldBack } = replaced;
  if (removed + heldBack > 0)
    deps.log.info({ meterId, removed, heldBack }, 'the service no longer lists readings of a meter');
  return {
    written: { ...sum(written, replaced.written), rejected: replaced.written.rejected },
    pages: pages + replaced.pages,
    readings: replaced.readings,
    total: replaced.total,
    complete: proved,
    unstable: !proved,
    removed,
    heldBack,
  };
}

const walkOf = (
  { service }: Pick<ActivityDependencies, 'service'>,
  { meterId, start, end }: IntervalRange,
  from: number,
  lane: RangeReading['lane'],
): Walk =>
  walkPages({
    client: service,
    endpoint: 'intervals',
    params: { meterId, ...(start === undefined ? {} : { start }), ...(end === undefined ? {} : { end }) },
    from,
    lane,
    signal: cancellation(),
    judged: false,
  });

/** Writes pages as they arrive, until one contradicts the warehouse or another page. */
async function writePages(
  deps: ActivityDependencies,
  range: IntervalRange,
  walk: Walk,
  { from = rangeStart, confirms = false, cursor, onWritten }: RangeReading,
  began: string,
): Promise<{ place: RangePlace; ended: ReturnType<Walk['report']>['ended'] }> {
  const { warehouse } = deps;
  let place = from;
  let { written, total } = from;
  let readAt = began;
  let waiting = noIntervals();
  let doubtful = false;
  /** Writes the readings that wait: `rows` readings of `pages` pages. */
  const flush = async (pages: number, rows: number): Promise<void> => {
    let { span, inDoubt = false } = place;
    for (const slice of slicesOf(waiting)) {
      const how = { confirms, range, after: span };
      const {
        span: wider,
        inDoubt: doubt,
        ...added
      } = await writeIntervals(warehouse, range.meterId, readAt, slice, how);
      noteWritten(deps, 'intervals', added);
      span = wider;
      inDoubt ||= doubt;
      written = sum(written, added);
      noteCursor(cursor(place));
      await onWritten?.({ ...place, readings: place.readings + slice.startAt.length, total, written });
    }
    waiting = noIntervals();
    const done = { page: from.page + pages, readings: from.readings + rows, total, written };
    place = { ...place, ...done, span, inDoubt };
  };
  let before = { pages: 0, rows: 0 };
  let readNext = readAt;
  for await (const page of walk) {
    await noteFields(deps, 'intervals', page.items);
    const columns = readIntervals(page.body, page.itemsKey, page.items);
    const joint = jointOf(waiting, columns);
    if (joint === 'apart' && waiting.startAt.length >= batches.readingsWritten) {
      await flush(before.pages, before.rows);
      readAt = readNext;
    }
    // This walk ends at a contradiction. The listing is then read again and compared as a whole.
    doubtful = joint === 'mixed' || place.inDoubt === true;
    if (doubtful) break;
    written = sum(written, await append(deps, range.meterId, page, columns, waiting));
    // If the total shrinks, a reading was deleted, and another may have moved to a page that was read before.
    if (page.total !== null) total = Math.max(total ?? 0, page.total);
    noteCursor(cursor(place));
    const { pages, rows } = walk.report();
    before = { pages, rows };
    if (waiting.startAt.length >= batches.readingsWritten && page.hasNext)
      readNext = await warehouseNow(warehouse.db);
  }
  if (!doubtful) await flush(before.pages, before.rows);
  return { place: doubtful ? { ...place, inDoubt: true } : place, ended: walk.report().ended };
}

/** Adds the meter's own readings of a page to the readings that wait; refuses the others. */
async function append(
  deps: ActivityDependencies,
  meterId: string,
  page: Page,
  columns: ListedIntervals,
  waiting: ListedIntervals,
): Promise<PageWritten> {
  const { own, strays } = divideReadings(meterId, page, columns);
  for (const [at, start] of own.startAt.entries()) {
    waiting.startAt.push(start);
    waiting.endAt.push(own.endAt[at] ?? null);
    waiting.usage.push(own.usage[at] ?? null);
    waiting.usageUnits.push(own.usageUnits[at] ?? null);
    waiting.quality.push(own.quality[at] ?? null);
    waiting.updated.push(own.updated[at] ?? null);
    waiting.granularitySeconds.push(own.granularitySeconds[at] ?? null);
    waiting.id.push(own.id[at] ?? null);
  }
  if (strays.length === 0) return nothingWritten;
  await rejectRecords(deps.warehouse.db, strays.map(refusalOf));
  const rejected = { ...nothingWritten, rejected: strays.length };
  noteWritten(deps, 'intervals', rejected);
  return rejected;
}

/**
 * How the readings of a page follow the waiting readings. `apart`: all start after them, or all before.
 * `joined`: they share one start at the border, where all readings are different. `mixed`: they lie among
 * them, so a reading may come twice and another may be missing.
 */
function jointOf(waiting: ListedIntervals, page: ListedIntervals): 'apart' | 'joined' | 'mixed' {
  if (waiting.startAt.length === 0 || page.startAt.length === 0) return 'apart';
  const [old, more] = [spanOf(waiting.startAt), spanOf(page.startAt)];
  if (more.first > old.last || more.last < old.first) return 'apart';
  const border = more.first === old.last ? old.last : more.last === old.first ? old.first : undefined;
  if (border === undefined) return 'mixed';
  const ids = [...identitiesAt(waiting, border), ...identitiesAt(page, border)];
  return new Set(ids).size < ids.length ? 'mixed' : 'joined';
}

/** Distinguishes readings with the same start: by their ids, or else by their ends, lengths and units. */
const identitiesAt = (columns: ListedIntervals, border: string): (string | null)[] =>
  columns.startAt.flatMap((start, at) => {
    if (start !== border) return [];
    const { id, endAt, granularitySeconds, usageUnits } = columns;
    return [id[at] ?? `${endAt[at]} ${granularitySeconds[at]} ${usageUnits[at]}`];
  });

/** The first and the last start, as the texts sort. */
function spanOf(starts: readonly string[]): Span {
  let [first = '', last = ''] = [starts[0], starts[0]];
  for (const start of starts) {
    if (start < first) first = start;
    if (start > last) last = start;
  }
  return { first, last };
}

/** Divides readings into parts that one write can hold. Readings with the same start stay together. */
function* slicesOf(columns: ListedIntervals): Generator<ReturnType<typeof sliceOf>> {
  const { startAt } = columns;
  for (let at = 0; at < startAt.length; ) {
    let end = Math.min(at + batches.readingsWritten, startAt.length);
    while (end < startAt.length && startAt[end] === startAt[end - 1]) end += 1;
    yield sliceOf(columns, at, end);
    at = end;
  }
}

import { canonicalId } from '../../contract/values.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import {
  byStart,
  packed,
  pageOf,
  type ReadingsPage,
  readyReadings,
  refusalsOf,
  unpacked,
} from '../../db/readings/pages.ts';
import { type IntervalColumns, readingsAt } from '../../db/readings/texts.ts';
import { itemTexts } from '../../db/records/page.ts';
import { type RejectedRecord, readingOf, refusedAs, refusedId } from '../../db/records/rejected.ts';
import { type ListedIntervals, readIntervals } from '../../service/intervals.ts';
import type { Page } from '../../service/page.ts';
import type { Walk } from '../../service/walk.ts';

/**
 * A pass over a listing of a meter's readings, in memory. No transaction is open while it is read, because the
 * service may answer slowly.
 */
export interface ListingPass {
  /** The warehouse's clock before the first request. */
  readonly readAt: string;
  /** The pages that have readings of the meter. */
  readonly pages: readonly ReadingsPage[];
  /** Pages and readings that the service sent. */
  readonly sent: { readonly pages: number; readonly readings: number };
  /** The service's total of readings; of several, the largest. */
  readonly total: number | null;
  /** Readings that no row of the meter can hold. */
  readonly refused: readonly RejectedRecord[];
  /** Why the pass may lack readings; undefined if it is complete. */
  readonly doubt: string | undefined;
  /** Whether readings were added while it was read, by the service's total. */
  readonly grew: boolean;
  /** Whether it showed a record twice: its pages shifted, and it may lack another record. */
  readonly shifted: boolean;
  /** Whether readings of a page lie among those of another page, so that one may be there twice. */
  readonly mixed: boolean;
}

/** What was read so far. */
export type PassPlace = Pick<ListingPass, 'total' | 'sent'>;

/** Reads a listing to its end. `onPage` is called after each page. */
export async function readPass(
  warehouse: Pick<Warehouse, 'db' | 'zoneIsUtc'>,
  meterId: string,
  begin: () => Walk,
  onPage: (page: Page, place: PassPlace) => void | Promise<void> = () => {},
): Promise<ListingPass> {
  const readAt = await warehouseNow(warehouse.db);
  const walk = begin();
  const pages: ReadingsPage[] = [];
  const refused: RejectedRecord[] = [];
  const ids = new Set<string>();
  let total: number | null = null;
  let withId = 0;
  let [grew, shrank] = [false, false];
  let before: number | null = null;
  for await (const page of walk) {
    if (page.total !== null) {
      grew ||= before !== null && page.total > before;
      shrank ||= before !== null && page.total < before;
      before = page.total;
      total = Math.max(total ?? 0, page.total);
    }
    const columns = readIntervals(page.body, page.itemsKey, page.items);
    const { own, strays } = divideReadings(meterId, page, columns);
    const { readings, wrong } = await readyReadings(warehouse, own);
    refused.push(...strays.map(refusalOf), ...refusalsOf(meterId, own, wrong));
    for (const id of readings.id) {
      if (id === null) continue;
      withId += 1;
      ids.add(id);
    }
    const ready = pageOf(readings);
    if (ready !== undefined) {
      // A single page is written at once. Of several, only one is not packed.
      const last = pages.pop();
      if (last !== undefined) pages.push(packed(last));
      pages.push(ready);
    }
    const { pages: count, rows } = walk.report();
    await onPage(page, { total, sent: { pages: count, readings: rows } });
  }
  const { ended, pages: count, rows } = walk.report();
  let doubt: string | undefined;
  if (ended !== 'last') doubt = 'the last page was not reached';
  else if (shrank) doubt = 'the total shrank between pages';
  else if (total !== null && rows < total) doubt = `${rows} readings of a total of ${total}`;
  const sent = { pages: count, readings: rows };
  const shifted = pages.length > 1 && ids.size < withId;
  return { readAt, pages, sent, total, refused, doubt, grew, shifted, mixed: areMixed(pages) };
}

/** Whether pages overlap in time; different readings may share the start at the border. */
function areMixed(pages: readonly ReadingsPage[]): boolean {
  const ordered = byStart(pages);
  return ordered.some((page, at) => {
    const before = ordered[at - 1];
    if (before === undefined || page.first > before.last) return false;
    if (page.first < before.last) return true;
    const shared = [...startingAt(before, page.first), ...startingAt(page, page.first)];
    return new Set(shared).size < shared.length;
  });
}

/** What distinguishes the readings of a page with this start: their ids, or else their lengths and units. */
function startingAt(page: ReadingsPage, start: string): string[] {
  const { startAt, id, seconds, usageUnits } = unpacked(page);
  return startAt.flatMap((one, at) => (one === start ? [id[at] ?? `${seconds[at]} ${usageUnits[at]}`] : []));
}

/** Whether the pages of two passes are the same. */
export const showsTheSame = (later: ListingPass, earlier: ListingPass): boolean =>
  later.pages.length === earlier.pages.length &&
  later.pages.every((page, at) => packed(page).content === packed(earlier.pages[at] as ReadingsPage).content);

/** Whether a later pass showed every reading that an earlier pass showed. */
export function showsAllOf(later: ListingPass, earlier: ListingPass): boolean {
  if (showsTheSame(later, earlier)) return true;
  const shown = new Map<string, number>();
  for (const reading of readingsOf(later)) shown.set(reading, (shown.get(reading) ?? 0) + 1);
  for (const reading of readingsOf(earlier)) {
    const left = shown.get(reading) ?? 0;
    if (left === 0) return false;
    shown.set(reading, left - 1);
  }
  return true;
}

/** Each reading of a pass as one text. */
function* readingsOf({ pages }: ListingPass): Generator<string> {
  for (const page of pages) {
    const columns = Object.values(unpacked(page)) as (readonly unknown[])[];
    for (const at of (columns[0] ?? []).keys()) yield JSON.stringify(columns.map((column) => column[at]));
  }
}

/** Longest text of an indexed column, in characters. */
const indexedMax = 500;
/** Longest texts of the key of a reading together: Postgres refuses entries of 2,704 bytes. */
const keyBytesMax = 2_600;

/** A reading that no row of the meter can hold. */
interface Stray {
  /** The id of its refusal. */
  readonly id: string;
  /** As the service sent it. */
  readonly text: string;
  readonly reason: string;
}

/** Divides a page into the meter's own readings and strays, which belong elsewhere or cannot be stored. */
function divideReadings(
  meterId: string,
  page: Page,
  columns: ListedIntervals,
): { readonly own: IntervalColumns; readonly strays: readonly Stray[] } {
  const reasons = columns.startAt.map((_, at) => whyStray(meterId, columns, at));
  const { unplaced } = columns;
  if (unplaced.length === 0 && reasons.every((reason) => reason === undefined))
    return { own: columns, strays: [] };
  const texts = itemTexts(page);
  const textAt = (position: number): string => texts[position] ?? '';
  const nowhere = new Set(unplaced);
  const placed = [...texts.keys()].filter((position) => !nowhere.has(position));
  return {
    own: readingsAt(
      columns,
      [...reasons.keys()].filter((at) => reasons[at] === undefined),
    ),
    strays: [
      ...reasons.flatMap((reason, at) => {
        if (reason === undefined) return [];
        const id = refusedId(readingOf(meterId, columns.startAt[at] ?? ''));
        return { id, text: textAt(placed[at] ?? -1), reason };
      }),
      ...unplaced.map((position) => {
        const text = textAt(position);
        const id = refusedId(readingOf(meterId, refusedAs({ id: page.ids[position] ?? null, text })));
        return { id, text, reason: 'the reading has no place in time' };
      }),
    ],
  };
}

function whyStray(
  meterId: string,
  { meterId: named, usageUnits }: ListedIntervals,
  at: number,
): string | undefined {
  const other = named[at] ?? meterId;
  if (other !== meterId && canonicalId(other) !== meterId) return `the reading names another meter, ${other}`;
  const unit = usageUnits[at] ?? '';
  if (unit.length > 100 && Buffer.byteLength(meterId + unit) > keyBytesMax)
    return `the unit and the id of the meter have more than ${keyBytesMax} bytes`;
  if (unit.length > indexedMax) return `the unit has more than ${indexedMax} characters`;
  return undefined;
}

/** The refusal of a stray, for `metersync.rejected_records`. */
const refusalOf = ({ reason, ...stray }: Stray): RejectedRecord => ({
  ...stray,
  resource: 'intervals',
  companyId: null,
  error: reason,
});

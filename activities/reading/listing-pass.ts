import { type Transaction, type Warehouse, withTransaction } from '../../db/connection/connect.ts';
import { warehouseNow } from '../../db/events/due.ts';
import { type IntervalColumns, sliceOf } from '../../db/records/interval-text.ts';
import { addListedReadings, makeListedReadings } from '../../db/records/listed-readings.ts';
import type { RejectedRecord } from '../../db/records/rejected-records.ts';
import { readIntervals } from '../../service/intervals.ts';
import type { Walk } from '../../service/walk.ts';
import { divideReadings, refusalOf } from './stray-readings.ts';

/**
 * A pass over a listing of a meter's readings, in memory. No transaction is open while it is read, because the
 * service may answer slowly.
 */
export interface ListingPass {
  /** The warehouse's clock before the first request. */
  readonly readAt: string;
  /** The readings of each page, as JSON of `IntervalColumns`: a third of the memory that the columns take. */
  readonly pages: readonly string[];
  readonly readings: number;
  /** The service's total of readings. */
  readonly total: number | null;
  /** Readings that no row of the meter can hold. */
  readonly refused: readonly RejectedRecord[];
  /** Why the pass may lack readings; undefined if it is complete. */
  readonly doubt: string | undefined;
  /** Whether it showed a record twice: its pages shifted, and it may lack another record. */
  readonly shifted: boolean;
}

/** Reads a listing to its end. `onPage` is called after each page. */
export async function readPass(
  warehouse: Pick<Warehouse, 'db'>,
  meterId: string,
  begin: () => Walk,
  onPage: () => void = () => {},
): Promise<ListingPass> {
  const readAt = await warehouseNow(warehouse.db);
  const walk = begin();
  const pages: string[] = [];
  const refused: RejectedRecord[] = [];
  const totals = new Set<number | null>();
  const ids = new Set<string>();
  let withId = 0;
  for await (const page of walk) {
    totals.add(page.total);
    const { own, strays } = divideReadings(
      meterId,
      page,
      readIntervals(page.body, page.itemsKey, page.items),
    );
    pages.push(JSON.stringify(sliceOf(own, 0, own.startAt.length)));
    refused.push(...strays.map(refusalOf));
    for (const id of own.id) {
      if (id === null) continue;
      withId += 1;
      ids.add(id);
    }
    onPage();
  }
  const { ended, rows: readings } = walk.report();
  const [total = null] = totals;
  let doubt: string | undefined;
  if (ended !== 'last') doubt = 'the last page was not reached';
  else if (totals.size > 1) doubt = 'the total changed between pages';
  else if (total !== null && readings < total) doubt = `${readings} readings of a total of ${total}`;
  const shifted = pages.length > 1 && ids.size < withId;
  return { readAt, pages, readings, total, refused, doubt, shifted };
}

/** Whether a later pass showed every reading that an earlier pass showed. */
export function showsAllOf(later: ListingPass, earlier: ListingPass): boolean {
  if (
    later.pages.length === earlier.pages.length &&
    later.pages.every((page, at) => page === earlier.pages[at])
  )
    return true;
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
    const columns = Object.values(JSON.parse(page) as Record<string, readonly unknown[]>);
    for (const at of (columns[0] ?? []).keys()) yield JSON.stringify(columns.map((column) => column[at]));
  }
}

/**
 * Does work in a transaction that has the readings of a pass in its temporary table: see `makeListedReadings`.
 * Returns its result, and the readings that no row can hold or Postgres refuses.
 */
export async function withListed<T>(
  warehouse: Warehouse,
  meterId: string,
  pass: ListingPass,
  work: (tx: Transaction) => Promise<T>,
): Promise<{ readonly result: T; readonly refused: readonly RejectedRecord[] }> {
  return await withTransaction(warehouse.db, async (tx) => {
    await makeListedReadings(tx);
    const refused = [...pass.refused];
    for (const page of pass.pages)
      refused.push(...(await addListedReadings(tx, warehouse, meterId, JSON.parse(page) as IntervalColumns)));
    return { result: await work(tx), refused };
  });
}

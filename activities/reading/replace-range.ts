import { attemptPolicy } from '../../contract/retry-policy.ts';
import { type Transaction, type Warehouse, withTransaction } from '../../db/connection/connect.ts';
import { warehouseFailure } from '../../db/connection/failures.ts';
import type { DeletesCap } from '../../db/deletes/absent.ts';
import { removeAbsentReadings } from '../../db/deletes/absent-readings.ts';
import { warehouseNow } from '../../db/events/due.ts';
import type { ReadRange } from '../../db/records/interval-key.ts';
import { lockReadings, noteFetched } from '../../db/records/interval-ledger.ts';
import {
  addListedReadings,
  deletePassesBefore,
  makeListedReadings,
  showsAllOf,
  showsTwice,
  writeListed,
} from '../../db/records/listed-readings.ts';
import type { RejectedRecord } from '../../db/records/rejected-records.ts';
import type { PageWritten } from '../../db/records/write-page.ts';
import { readIntervals } from '../../service/intervals.ts';
import type { Walk } from '../../service/walk.ts';
import { divideReadings, refusalOf } from './stray-readings.ts';

/** How a listing is read, pass by pass. */
interface Passes {
  /** Begins to walk over the listing of the range. */
  readonly walk: () => Walk;
  /** Called with each page, and its readings that no row can hold. */
  readonly onPage: (refused: readonly RejectedRecord[]) => Promise<void>;
}

export interface Replacing extends Passes {
  /** Names the notes about readings that are removed or held back. */
  readonly runId: string;
  /** How many readings may be removed although no other reading explains their absence. */
  readonly cap: DeletesCap;
}

export interface Replaced {
  /** Whether a pass over the listing was proved; without one, nothing is changed. */
  readonly proved: boolean;
  readonly written: PageWritten;
  readonly removed: number;
  readonly heldBack: number;
  /** Of the last pass. */
  readonly readings: number;
  readonly total: number | null;
  /** Of all passes. */
  readonly pages: number;
}

/**
 * Replaces the readings of a range by those of a proved listing: adds, changes and removes readings that
 * differ, except readings that a later read has written.
 */
export async function replaceRange(
  { warehouse }: { readonly warehouse: Warehouse },
  range: ReadRange & { readonly meterId: string },
  { runId, cap, ...passes }: Replacing,
): Promise<Replaced> {
  const { meterId } = range;
  try {
    return await withTransaction(warehouse.db, async (tx) => {
      const { proved, rejected, ...read } = await readUntilProved(tx, warehouse, meterId, passes);
      const nothing = { inserted: 0, changed: 0, rejected };
      if (proved === undefined) return { ...read, written: nothing, removed: 0, heldBack: 0, proved: false };
      // An older read must not bring back what a later one removed.
      if (await lockReadings(tx, meterId, proved.readAt))
        return { ...read, written: nothing, removed: 0, heldBack: 0, proved: false };
      const pass = { meterId, range, runId, ...proved };
      const absent = await removeAbsentReadings(tx, pass, cap);
      const written = { ...nothing, ...(await writeListed(tx, pass)) };
      await noteFetched(tx, range);
      return { ...read, ...absent, written, proved: true };
    });
  } catch (error) {
    throw warehouseFailure(error);
  }
}

/** A proved pass: its number among the passes of the transaction, and the clock before it began. */
export interface ProvedListing {
  readonly pass: number;
  readonly readAt: string;
}

interface PassesRead extends Pick<Replaced, 'readings' | 'total' | 'pages'> {
  readonly proved: ProvedListing | undefined;
  /** Readings of the last pass that no row can hold. */
  readonly rejected: number;
}

/**
 * Reads a listing of readings into the transaction until a pass is proved. A consistent pass over one page is
 * enough. For several pages, a later pass has to contain all of it: see `confirmsPass`.
 */
export async function readUntilProved(
  tx: Transaction,
  warehouse: Warehouse,
  meterId: string,
  passes: Passes,
): Promise<PassesRead> {
  await makeListedReadings(tx);
  let before: ProvedListing | undefined;
  let read = { readings: 0, total: null as number | null, pages: 0, rejected: 0 };
  for (let pass = 1; pass <= attemptPolicy.passesMax; pass++) {
    const readAt = await warehouseNow(tx);
    const { doubt, shifted, pages, ...counts } = await readPass(tx, warehouse, { meterId, pass }, passes);
    const consistent = doubt === undefined && !shifted;
    read = { ...counts, pages: read.pages + pages };
    if (consistent && pages === 1) return { ...read, proved: { pass, readAt } };
    if (before !== undefined && (await showsAllOf(tx, pass, before.pass))) return { ...read, proved: before };
    await deletePassesBefore(tx, pass);
    before = consistent ? { pass, readAt } : undefined;
  }
  return { ...read, proved: undefined };
}

/** Reads a listing into the transaction. `doubt` says why it may lack readings, `shifted` if pages moved. */
export async function readPass(
  tx: Transaction,
  warehouse: Warehouse,
  { meterId, pass }: { readonly meterId: string; readonly pass: number },
  { walk: begin, onPage }: Passes,
) {
  const walk = begin();
  let rejected = 0;
  const totals = new Set<number | null>();
  for await (const page of walk) {
    totals.add(page.total);
    const columns = readIntervals(page.body, page.itemsKey, page.items);
    const { own, strays } = divideReadings(meterId, page, columns);
    const refused = await addListedReadings(tx, warehouse, { meterId, pass }, own);
    refused.push(...strays.map(refusalOf));
    rejected += refused.length;
    await onPage(refused);
  }
  const { ended, rows: readings, pages } = walk.report();
  const [total = null] = totals;
  let doubt: string | undefined;
  if (ended !== 'last') doubt = 'the last page was not reached';
  else if (totals.size > 1) doubt = 'the total changed between pages';
  else if (total !== null && readings < total) doubt = `${readings} readings of a total of ${total}`;
  const shifted = pages > 1 && (await showsTwice(tx, pass));
  return { doubt, shifted, readings, total, pages, rejected };
}

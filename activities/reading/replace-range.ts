import { attemptPolicy } from '../../contract/retry-policy.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import { warehouseFailure } from '../../db/connection/failures.ts';
import type { DeletesCap } from '../../db/deletes/absent.ts';
import { removeAbsentReadings } from '../../db/deletes/absent-readings.ts';
import type { ReadRange } from '../../db/records/interval-key.ts';
import { lockReadings, noteFetched } from '../../db/records/interval-ledger.ts';
import { writeListed } from '../../db/records/listed-readings.ts';
import { rejectRecords } from '../../db/records/rejected-records.ts';
import { nothingWritten, type PageWritten } from '../../db/records/write-page.ts';
import type { Walk } from '../../service/walk.ts';
import { type ListingPass, readPass, showsAllOf, withListed } from './listing-pass.ts';

/** How a listing is read, pass by pass. */
interface Passes {
  /** Begins to walk over the listing of the range. */
  readonly walk: () => Walk;
  /** Called after each page. */
  readonly onPage: () => void;
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
    const { proved, last, pages } = await readUntilProved(warehouse, meterId, passes);
    const { readings, total } = last;
    const read = { readings, total, pages, removed: 0, heldBack: 0 };
    if (proved === undefined) {
      await rejectRecords(warehouse.db, last.refused);
      return { ...read, written: { ...nothingWritten, rejected: last.refused.length }, proved: false };
    }
    const { readAt } = proved;
    const { result, refused } = await withListed(warehouse, meterId, proved, async (tx) => {
      // An older read must not bring back what a later one removed.
      if (await lockReadings(tx, meterId, readAt)) return undefined;
      const pass = { meterId, range, runId, readAt };
      const absent = await removeAbsentReadings(tx, pass, cap);
      const rows = await writeListed(tx, pass);
      await noteFetched(tx, range);
      return { absent, rows };
    });
    await rejectRecords(warehouse.db, refused);
    const written = { ...nothingWritten, ...result?.rows, rejected: refused.length };
    return { ...read, ...result?.absent, written, proved: result !== undefined };
  } catch (error) {
    throw warehouseFailure(error);
  }
}

interface PassesRead {
  readonly proved: ListingPass | undefined;
  readonly last: ListingPass;
  /** Of all passes. */
  readonly pages: number;
}

/**
 * Reads a listing of readings until a pass is proved. A consistent pass over one page is enough. For several
 * pages, a later pass has to contain all of it: see `confirmsPass`.
 */
async function readUntilProved(
  warehouse: Warehouse,
  meterId: string,
  { walk, onPage }: Passes,
): Promise<PassesRead> {
  let before: ListingPass | undefined;
  let pages = 0;
  for (let number = 1; ; number++) {
    const last = await readPass(warehouse, meterId, walk, onPage);
    pages += last.pages.length;
    const isConsistent = last.doubt === undefined && !last.shifted;
    if (isConsistent && last.pages.length === 1) return { proved: last, last, pages };
    if (before !== undefined && showsAllOf(last, before)) return { proved: before, last, pages };
    if (number === attemptPolicy.passesMax) return { proved: undefined, last, pages };
    before = isConsistent ? last : undefined;
  }
}

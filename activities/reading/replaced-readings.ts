import { batches } from '../../contract/limits.ts';
import { warehouseNow } from '../../db/catch-up/due.ts';
import { sliceOf } from '../../db/records/interval-text.ts';
import { removeReadings } from '../../db/records/repair.ts';
import { heldReadings, overlaps } from '../../db/records/replaced-readings.ts';
import { readIntervals } from '../../service/intervals.ts';
import type { Walk } from '../../service/walk.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { type Seen, seenReadings } from './seen-readings.ts';
import { divideReadings } from './stray-readings.ts';

export interface IntervalRange {
  readonly meterId: string;
  /** ISO times; all readings of the meter when absent. */
  readonly start?: string;
  readonly end?: string;
}

/** What a complete read of a range has listed. */
interface Listed {
  readonly range: IntervalRange;
  readonly readings: number;
  readonly seen: Seen | undefined;
}

/**
 * Removes readings that the service replaced by ones of another length or unit: they overlap listed ones, and are
 * not listed. Reads the range again if the warehouse has more readings in it than were listed. A reading that
 * changed later than the listed ones stays: their listing lags. One that nothing overlaps stays, too.
 */
export async function removeReplaced(
  { warehouse, log }: ActivityDependencies,
  { range, readings, seen }: Listed,
  walkOf: (range: IntervalRange) => Walk,
): Promise<void> {
  const { meterId } = range;
  if (seen === undefined) return;
  const held = await heldReadings(warehouse.db, meterId, seen, range.start);
  if (held.count <= readings) return;
  // The service leaves out a reading that ends beyond the range.
  const end = range.end !== undefined && held.end !== null && held.end > range.end ? held.end : range.end;
  const wider: IntervalRange = end === undefined ? range : { ...range, end };
  const readAt = await warehouseNow(warehouse.db);
  const walk = walkOf(wider);
  const again = seenReadings(undefined);
  const listed = new Set<string>();
  const replaced = new Set<string>();
  let total = 0;
  for await (const page of walk) {
    total = Math.max(total, page.total ?? 0);
    const columns = readIntervals(page.body, page.itemsKey, page.items);
    again.add(columns);
    const { own } = divideReadings(meterId, page, columns);
    for (let at = 0; at < own.startAt.length; at += batches.readingsCompared) {
      const slice = sliceOf(own, at, at + batches.readingsCompared);
      for (const overlap of await overlaps(warehouse, meterId, slice, wider, held.longest)) {
        listed.add(overlap.listed);
        if (!overlap.newer) replaced.add(overlap.other);
      }
    }
  }
  const { ended, rows } = walk.report();
  if (ended !== 'last' || rows < total || again.soFar()?.repeated === true) return;
  const gone = [...replaced].filter((id) => !listed.has(id));
  if (gone.length === 0) return;
  const removed = await removeReadings(warehouse.db, meterId, gone, readAt);
  log.info({ meterId, removed }, 'readings that the service replaced are removed');
}

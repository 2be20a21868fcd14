import type { Warehouse } from '../../db/connection/connect.ts';
import { pageOf, type ReadingsPage, readyReadings, refusalsOf } from '../../db/readings/pages.ts';
import { type ReadingsRead, replaceReadings } from '../../db/readings/replace.ts';
import type { IntervalColumns } from '../../db/readings/texts.ts';
import { type RejectedRecord, rejectRecords } from '../../db/records/rejected.ts';

/** When a read began, by its number: all within the day for which reads are remembered. */
export const began = (number: number): string =>
  new Date(Date.now() - 20 * 3_600_000 + number * 60_000).toISOString();

/** Packs columns as a page of a listing, with the readings that no row can hold. */
export async function pageOfReadings(
  warehouse: Warehouse,
  meterId: string,
  columns: IntervalColumns,
): Promise<{ pages: ReadingsPage[]; refused: RejectedRecord[] }> {
  const { readings, wrong } = await readyReadings(warehouse, columns);
  const page = pageOf(readings);
  return { pages: page === undefined ? [] : [page], refused: refusalsOf(meterId, columns, wrong) };
}

/** Writes readings of a meter as a read of a range showed them; by default nothing is removed. */
export async function writeReadings(
  warehouse: Warehouse,
  meterId: string,
  readAt: string,
  columns: IntervalColumns,
  how: Partial<Pick<ReadingsRead, 'range' | 'proof' | 'runId' | 'cap'>> = {},
) {
  const { pages, refused } = await pageOfReadings(warehouse, meterId, columns);
  const runId = '00000000-0000-4000-8000-000000000000';
  const read = { meterId, readAt, pages, runId, cap: null, range: {}, proof: 'partial', ...how } as const;
  const replaced = await replaceReadings(warehouse, read);
  await rejectRecords(warehouse.db, refused);
  const unreadable = pages.reduce((sum, page) => sum + page.unreadable, 0);
  return { ...replaced, rejected: refused.length, ...(unreadable > 0 ? { unreadable } : {}) };
}

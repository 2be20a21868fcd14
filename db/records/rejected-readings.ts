import type { Executor } from '../connection/connect.ts';
import type { IntervalColumns } from './interval-text.ts';
import { type RejectedRecord, readingOf, rejectRecords } from './rejected-records.ts';
import { nothingWritten, type PageWritten } from './write-page.ts';

/** Builds the refused records of readings. `wrong` has the reason of each by its place. */
export const refusalsOf = (
  meterId: string,
  columns: IntervalColumns,
  wrong: ReadonlyMap<number, string>,
): RejectedRecord[] =>
  [...wrong].map(([place, error]): RejectedRecord => {
    const reading = Object.fromEntries(
      Object.entries(columns).map(([name, values]) => [name, values?.[place]]),
    );
    const id = readingOf(meterId, columns.startAt[place] ?? '');
    return { resource: 'intervals', companyId: null, id, error, text: JSON.stringify(reading) };
  });

/** Stores refused readings. */
export async function rejectReadings(
  db: Executor,
  meterId: string,
  columns: IntervalColumns,
  wrong: ReadonlyMap<number, string>,
): Promise<PageWritten> {
  if (wrong.size === 0) return nothingWritten;
  await rejectRecords(db, refusalsOf(meterId, columns, wrong));
  return { ...nothingWritten, rejected: wrong.size };
}

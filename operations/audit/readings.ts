import type { Difference } from '../../db/read/compare-records.ts';
import { itemTexts } from '../../db/records/item-texts.ts';
import { readingOf, refusedAs } from '../../db/records/rejected-records.ts';
import { type IntervalColumns, readIntervals } from '../../service/intervals.ts';
import type { Page } from '../../service/page.ts';

/** The readings of a page. */
export interface PageOfReadings {
  readonly columns: IntervalColumns;
  /** Those without a place in time, under the ids of their refusals: no table has them. */
  readonly unplaced: readonly Difference[];
}

export function readingsOf(meterId: string, page: Page): PageOfReadings {
  const columns = readIntervals(page.body, page.itemsKey, page.items);
  const texts = columns.unplaced.length === 0 ? [] : itemTexts(page);
  const unplaced = columns.unplaced.map((place): Difference => {
    const id = refusedAs({ id: page.ids[place] ?? null, text: texts[place] ?? '' });
    return { id: readingOf(meterId, id), state: 'missing' };
  });
  return { columns, unplaced };
}

/** The columns of pages, one after the other. */
export async function* columnsOf(pages: AsyncIterable<PageOfReadings>): AsyncGenerator<IntervalColumns> {
  for await (const { columns } of pages) yield columns;
}

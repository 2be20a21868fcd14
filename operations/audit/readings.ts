import { divideReadings } from '../../activities/reading/stray-readings.ts';
import type { Difference } from '../../db/read/compare-records.ts';
import type { IntervalColumns } from '../../db/records/interval-text.ts';
import { readIntervals } from '../../service/intervals.ts';
import type { Walk } from '../../service/walk.ts';

export interface PageOfReadings {
  readonly columns: IntervalColumns;
  /** Strays, under the ids of their refusals: no table has them. */
  readonly strays: readonly Difference[];
}

export interface ReadingsWalk extends AsyncIterable<PageOfReadings> {
  /** Why the walk may lack readings; undefined if it has all. */
  doubt(): string | undefined;
}

export function walkReadings(meterId: string, walk: Walk): ReadingsWalk {
  const totals = new Set<number | null>();
  async function* read(): AsyncGenerator<PageOfReadings> {
    for await (const page of walk) {
      totals.add(page.total);
      const columns = readIntervals(page.body, page.itemsKey, page.items);
      const { own, strays } = divideReadings(meterId, page, columns);
      yield { columns: own, strays: strays.map(({ id }) => ({ id, state: 'missing' })) };
    }
  }
  return {
    [Symbol.asyncIterator]: read,
    doubt: () => {
      const { ended, rows } = walk.report();
      if (ended !== 'last') return 'the last page was not reached';
      if (totals.size > 1) return 'the total changed between pages';
      const [total = null] = totals;
      return total !== null && rows < total ? `${rows} readings of a total of ${total}` : undefined;
    },
  };
}

import { hash } from 'node:crypto';
import type { IntervalColumns } from '../../service/intervals.ts';

/** What a walk has seen, of a size that does not grow: another attempt goes on with it. */
export interface Seen {
  /** The first and the last start of a reading, as texts sort. */
  readonly first: string;
  readonly last: string;
  /** Whether a reading may have come on two pages: then pages shifted, and another may never have come. */
  readonly repeated: boolean;
}

export interface SeenReadings {
  add(page: IntervalColumns): void;
  /** Undefined before the first reading. */
  soFar(): Seen | undefined;
}

/**
 * Notes the readings of a walk, as the writer identifies them. Keeps 8 bytes for each, and looks them up only
 * if a page lies among the ones before. Nothing is kept of an `earlier` attempt but where it lies: a page
 * there may repeat it.
 */
export function seenReadings(earlier: Seen | undefined): SeenReadings {
  const keys: number[] = [];
  let known: Set<number> | undefined;
  let seen = earlier;
  return {
    add(page) {
      const [start] = page.startAt;
      if (start === undefined) return;
      let [first, last] = [start, start];
      for (const other of page.startAt) {
        if (other < first) first = other;
        if (other > last) last = other;
      }
      const liesAmong = (pages: Seen | undefined): boolean =>
        pages !== undefined && first <= pages.last && last >= pages.first;
      const added = page.startAt.map((_, at) => keyOf(page, at));
      if (liesAmong(seen)) known ??= new Set(keys);
      const repeated = liesAmong(earlier) || added.some((key) => known?.has(key) === true);
      for (const key of added) {
        keys.push(key);
        known?.add(key);
      }
      seen = {
        first: seen === undefined || first < seen.first ? first : seen.first,
        last: seen === undefined || last > seen.last ? last : seen.last,
        repeated: repeated || seen?.repeated === true,
      };
    },
    soFar: () => seen,
  };
}

/** Returns 53 bits of a digest: for a million readings, one chance in 18,000 that two of them are alike. */
function keyOf(
  { meterId, startAt, endAt, granularitySeconds, usageUnits }: IntervalColumns,
  at: number,
): number {
  const length = granularitySeconds[at] ?? endAt[at];
  const digest = hash('sha1', `${startAt[at]} ${length} ${usageUnits[at]} ${meterId[at]}`, 'buffer');
  return digest.readUIntBE(0, 6) * 2 ** 5 + (digest.readUInt8(6) % 2 ** 5);
}

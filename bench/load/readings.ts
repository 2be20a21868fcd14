import type { IntervalColumns } from '../../db/records/interval-text.ts';
import { createRandom } from './random.ts';

const quarterHourMs = 15 * 60 * 1000;
const firstReading = Date.UTC(2025, 0, 1);

/** Makes quarter-hour readings from number `from` on, as columns of texts as the service sends them. */
export function readings(seed: number, from: number, count: number, updated: string): IntervalColumns {
  const random = createRandom(seed + from);
  const at = (place: number) =>
    `${new Date(firstReading + place * quarterHourMs).toISOString().slice(0, -1)}000`;
  const column = <T>(value: (place: number) => T): T[] =>
    Array.from({ length: count }, (_, n) => value(from + n));
  return {
    startAt: column(at),
    endAt: column((place) => at(place + 1)),
    granularitySeconds: column(() => null),
    usage: column(() => `${random.int(0, 99)}.${random.int(100, 999)}`),
    usageUnits: column(() => 'kWh'),
    quality: column(() => 'ACTUAL'),
    updated: column(() => updated),
    id: column(() => null),
  };
}

/**
 * Makes the readings that an earlier sync left: the first three fifths, of which a sixth have another value.
 * So half of the range is identical, a tenth has changed, and two fifths are new.
 */
export function earlier(
  columns: IntervalColumns,
  updated: string,
): IntervalColumns & { readonly changed: number } {
  const count = Math.floor((columns.startAt.length * 3) / 5);
  const changed = (place: number) => place % 6 === 0;
  const cut = <T>(values: readonly T[]): T[] => values.slice(0, count);
  return {
    startAt: cut(columns.startAt),
    endAt: cut(columns.endAt),
    granularitySeconds: cut(columns.granularitySeconds),
    usage: cut(columns.usage).map((usage, place) => (changed(place) ? `1${usage}` : usage)),
    usageUnits: cut(columns.usageUnits),
    quality: cut(columns.quality),
    updated: cut(columns.updated).map((now, place) => (changed(place) ? updated : now)),
    id: cut(columns.id),
    changed: Math.ceil(count / 6),
  };
}

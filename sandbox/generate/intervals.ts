import type { MeterInPlace } from '../records/company.ts';
import { decimal } from '../records/texts.ts';
import { addDays, toText } from '../time.ts';
import { copyLine } from './copy.ts';
import { createRandom } from './random.ts';

/** Readings of a meter with one granularity and unit; a meter can have several (service.md 2.6). */
interface Series {
  readonly meter: MeterInPlace;
  readonly seconds: number;
  readonly units: string;
  readonly timeZone: string;
}

/** Returns a company's series: the first meter's by quarter-hours, the second's by hours, no others. */
export function seriesOf(meters: readonly MeterInPlace[], timeZones: ReadonlyMap<string, string>): Series[] {
  return meters.slice(0, 2).flatMap((meter, index) => {
    const timeZone = timeZones.get(meter.site.id) ?? 'UTC';
    const seconds = index === 0 ? 900 : 3600;
    const one = (units: string): Series => ({ meter, seconds, units, timeZone });
    if (meter.facts.datasourceType === 'GAS') return [one('CCF')];
    if (meter.facts.datasourceType === 'WATER') return [one('gal (US)')];
    return index === 1 ? [one('kWh'), one('KW')] : [one('kWh')];
  });
}

/** Returns the COPY lines, in UTC, of a series for `days` local days, of 23 to 25 hours, before `until`. */
export function* intervalLines(
  series: Series,
  seed: number,
  days: number,
  until: string,
  localDays: LocalDays,
): Generator<string> {
  const random = createRandom('intervals', seed, series.meter.id, series.units);
  const base = random.int(200, 20_000);
  for (let day = -days; day < 0; day++) {
    const date = addDays(until, day);
    const from = localDays.midnight(date, series.timeZone);
    const to = localDays.midnight(addDays(date, 1), series.timeZone);
    const stamp = `${addDays(date, 1)}T12:00:00.${(random.word() % 1_000_000).toString().padStart(6, '0')}`;
    const quality = random.chance(0.03) ? 'ESTIMATED' : 'ACTUAL';
    for (let at = from; at < to; at += series.seconds * 1000) {
      const hour = Math.floor((at - from) / 3_600_000);
      const milli = Math.floor((base * (60 + shape(hour))) / 100) + (random.word() % base);
      yield copyLine([
        series.meter.number,
        toText(BigInt(at) * 1000n),
        series.seconds,
        series.units,
        stamp,
        stamp,
        decimal(milli, 3),
        quality,
      ]);
    }
  }
}

/** By how many percent the load of an hour of the local day is above the load at night. */
const shape = (hour: number): number => (hour < 6 ? 0 : hour < 9 ? 45 : hour < 18 ? 90 : hour < 22 ? 60 : 15);

/** Finds when days begin in time zones. A call of Intl takes 50 µs, so results are kept. */
export interface LocalDays {
  /** Milliseconds since 1970 at which a date `YYYY-MM-DD` begins in a zone. */
  midnight(date: string, timeZone: string): number;
}

export function createLocalDays(): LocalDays {
  const known = new Map<string, number>();
  const formats = new Map<string, Intl.DateTimeFormat>();

  const formatOf = (timeZone: string): Intl.DateTimeFormat => {
    const format =
      formats.get(timeZone) ?? new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
    formats.set(timeZone, format);
    return format;
  };

  const compute = (date: string, timeZone: string): number => {
    const utc = Date.parse(`${date}T00:00:00Z`);
    const format = formatOf(timeZone);
    // Two steps, because the offset at UTC midnight may belong to the other side of a clock change.
    return utc - offsetAt(utc - offsetAt(utc, format), format);
  };

  return {
    midnight(date, timeZone) {
      const key = `${timeZone} ${date}`;
      const at = known.get(key) ?? compute(date, timeZone);
      known.set(key, at);
      return at;
    },
  };
}

/** Milliseconds that local time is ahead of UTC. */
function offsetAt(at: number, format: Intl.DateTimeFormat): number {
  const name = format.formatToParts(at).find((part) => part.type === 'timeZoneName')?.value;
  const [, sign = '+', hours = '0', minutes = '0'] = /GMT([+-])(\d{2}):(\d{2})/.exec(name ?? '') ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

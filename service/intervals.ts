import { isObject, jsonText, parseExact } from '../contract/json.ts';

/**
 * Interval records as columns, for one set-based write. Every value is the service's own text, with all its
 * digits. The arrays have the same length, except `unplaced`.
 */
export interface ListedIntervals {
  readonly startAt: string[];
  /** Null where only a granularity was sent. */
  readonly endAt: (string | null)[];
  readonly usage: (string | null)[];
  readonly usageUnits: (string | null)[];
  readonly quality: (string | null)[];
  readonly updated: (string | null)[];
  /** The id of the record; null if it has none that is a text or a safe number. */
  readonly id: (string | null)[];
  /** Null if the record names no meter. The reading then belongs to the requested meter. */
  readonly meterId: (string | null)[];
  /** Null if the record has no granularity. It is then end − start. */
  readonly granularitySeconds: (number | null)[];
  /** Positions of the records without a place in time; they are in no column. */
  readonly unplaced: number[];
}

/**
 * Reads the interval records of a page. Accepts `start`/`end` or `startDate`/`endDate`; the meter as
 * `meterId`, or as `meter`, which is an id or an object with an id; `granularitySeconds` or `granularity`. A
 * value of the wrong type becomes its JSON text, which the warehouse refuses by name.
 * @param body the page as received
 * @param itemsKey key of the records; null for a bare array
 * @param items the records as JSON.parse reads them, if the caller has them: saves parsing again
 */
export function readIntervals(
  body: string,
  itemsKey: string | null,
  items: readonly unknown[] = itemsOf(JSON.parse(body), itemsKey),
): ListedIntervals {
  const columns = columnsOf(items);
  if (columns !== undefined) return columns;
  const exact = columnsOf(itemsOf(parseExact(body, numericKeys), itemsKey));
  if (exact === undefined) throw new Error('a number was left after parseExact');
  return exact;
}

type Json = Readonly<Record<string, unknown>>;

const numericKeys: ReadonlySet<string> = new Set(
  'usage usageUnits quality updated meterId meter id start end startDate endDate'.split(' '),
);

function itemsOf(parsed: unknown, itemsKey: string | null): readonly unknown[] {
  return (itemsKey === null ? parsed : (parsed as Json)[itemsKey]) as readonly unknown[];
}

const noIntervals = (): ListedIntervals => ({
  startAt: [],
  endAt: [],
  usage: [],
  usageUnits: [],
  quality: [],
  updated: [],
  id: [],
  meterId: [],
  granularitySeconds: [],
  unplaced: [],
});

/** Makes the columns; undefined if any value is a number. */
function columnsOf(items: readonly unknown[]): ListedIntervals | undefined {
  const columns = noIntervals();
  for (let position = 0; position < items.length; position++) {
    const item = items[position];
    if (!isObject(item)) {
      columns.unplaced.push(position);
      continue;
    }
    const usage = textOf(item.usage);
    const start = textOf(startOf(item));
    const end = textOf(endOf(item));
    const units = textOf(item.usageUnits);
    const quality = textOf(item.quality);
    const updated = textOf(item.updated);
    const meter = textOf(meterOf(item));
    const granularity = wholeSeconds(item.granularitySeconds ?? item.granularity);
    if (usage === undefined || start === undefined || end === undefined || units === undefined)
      return undefined;
    if (quality === undefined || updated === undefined || meter === undefined) return undefined;
    if (start === null || (end === null && granularity === null)) {
      columns.unplaced.push(position);
      continue;
    }
    columns.startAt.push(start);
    columns.endAt.push(end);
    columns.usage.push(usage);
    columns.usageUnits.push(units);
    columns.quality.push(quality);
    columns.updated.push(updated);
    columns.id.push(idOf(item.id));
    columns.meterId.push(meter);
    columns.granularitySeconds.push(granularity);
  }
  return columns;
}

/** The start and end of a reading, as the service sent them. */
export const startOf = (item: Json): unknown => item.start ?? item.startDate;
export const endOf = (item: Json): unknown => item.end ?? item.endDate;

function meterOf(item: Json): unknown {
  if (item.meterId !== undefined && item.meterId !== null) return item.meterId;
  return isObject(item.meter) ? item.meter.id : item.meter;
}

/** The id distinguishes readings of one time. No column stores it, so an unusable id counts as none. */
function idOf(id: unknown): string | null {
  if (Number.isSafeInteger(id)) return String(id);
  return typeof id === 'string' && id.isWellFormed() && !id.includes('\0') ? id : null;
}

/** Returns null for anything that is not a whole number of seconds. Start and end then decide. */
function wholeSeconds(value: unknown): number | null {
  const seconds = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
  return typeof seconds === 'number' && Number.isSafeInteger(seconds) && seconds > 0 ? seconds : null;
}

/** Returns undefined for a number, whose text is lost because the float may be rounded. */
function textOf(value: unknown): string | null | undefined {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return null;
  if (typeof value === 'number') return undefined;
  return jsonText(value) ?? 'nested too deeply';
}

import { isNumberText, isTimeText } from '../../contract/value-texts.ts';
import { asSent, holdable } from './unholdable.ts';

/** Readings as columns, in the text that the service sent, with one element per reading. */
export interface IntervalColumns {
  readonly startAt: readonly string[];
  readonly endAt: readonly (string | null)[];
  /** The length in seconds if the record has it. Otherwise it is the time from start to end. */
  readonly granularitySeconds: readonly (number | null)[];
  /** Exact decimal text. */
  readonly usage: readonly (string | null)[];
  readonly usageUnits: readonly (string | null)[];
  readonly quality: readonly (string | null)[];
  readonly updated: readonly (string | null)[];
  /** The ids of the records, which distinguish readings of the same time. No column stores them. */
  readonly id: readonly (string | null)[];
  /** The fields that could not be read with their texts, as JSON; absent if all could. */
  readonly unreadable?: readonly (string | null)[] | undefined;
}

/** The readings at the given places. */
export const readingsAt = (columns: IntervalColumns, places: readonly number[]): IntervalColumns =>
  ofEach(columns, (values) => places.map((place) => values[place] as (typeof values)[number]));

/** The readings at places `from` (inclusive) to `to` (exclusive). */
export const sliceOf = (columns: IntervalColumns, from: number, to: number): IntervalColumns =>
  ofEach(columns, (values) => values.slice(from, to));

function ofEach(
  columns: IntervalColumns,
  pick: <T>(values: readonly T[]) => readonly T[],
): IntervalColumns {
  return {
    startAt: pick(columns.startAt),
    endAt: pick(columns.endAt),
    granularitySeconds: pick(columns.granularitySeconds),
    usage: pick(columns.usage),
    usageUnits: pick(columns.usageUnits),
    quality: pick(columns.quality),
    updated: pick(columns.updated),
    id: pick(columns.id),
    unreadable: columns.unreadable && pick(columns.unreadable),
  };
}

/** Lengths, first and last start of readings whose times Postgres can cast directly. */
export interface PlainReadings {
  readonly seconds: readonly number[];
  readonly from: string;
  readonly to: string;
  /** Whether starts ascend and length and unit are the same, so that no key occurs twice. */
  readonly distinct: boolean;
}

/**
 * Checks that all times are plain ISO times of one shape, which compare as text and which Postgres
 * casts directly; undefined if not. The seconds from start to end are computed here: times must end
 * in Z, or be in UTC without a zone (`zoneIsUtc`). Postgres decides whether a time exists.
 */
export function plainReadings(
  columns: IntervalColumns,
  zoneIsUtc: boolean,
): PlainReadings | undefined {
  const { startAt, endAt, granularitySeconds, usageUnits, updated } = columns;
  const first = startAt[0] ?? '';
  if (!plainTime.test(first) || !(zoneIsUtc || first.endsWith('Z'))) return undefined;
  const distance = distances(first);
  const seconds: number[] = [];
  let [from, to, before] = [first, first, ''];
  let distinct = true;
  for (let at = 0; at < startAt.length; at++) {
    const start = startAt[at] ?? '';
    const end = endAt[at] ?? null;
    const change = updated[at] ?? null;
    if (!sameShape(start, first)) return undefined;
    if (change !== null && !plainTime.test(change)) return undefined;
    const granularity = granularitySeconds[at] ?? null;
    if (granularity === null && (end === null || !sameShape(end, first))) return undefined;
    const length = granularity ?? distance(start, end ?? '');
    if (!Number.isInteger(length)) return undefined;
    seconds.push(length);
    if (start <= before || length !== seconds[0] || usageUnits[at] !== usageUnits[0])
      distinct = false;
    if (start < from) from = start;
    if (start > to) to = start;
    before = start;
  }
  return { seconds, from, to, distinct };
}

/**
 * Finds the values of readings that cannot be read, and makes them null in `columns`. Whether a
 * plain time exists is checked only with `strictly`, because nearly all do. `wrong` has the
 * reasons, by place, why no row can hold a reading: it has no usable start or length. `right` has
 * the places of the other readings.
 */
export function readReadings(given: IntervalColumns, zoneIsUtc: boolean, strictly = false) {
  const supposed = plainReadings(given, zoneIsUtc);
  const columns = readableColumns(given);
  const wrong = new Map<number, string>();
  const { startAt, endAt, granularitySeconds } = columns;
  for (const [at, start] of startAt.entries()) {
    const needed = (granularitySeconds[at] ?? null) === null ? [start, endAt[at] ?? ''] : [start];
    const bad =
      strictly || supposed === undefined ? needed.find((time) => !isTimeText(time)) : undefined;
    if (bad !== undefined) wrong.set(at, `Cannot read ${JSON.stringify(bad)} as a time.`);
    else if (needed.length > 1 && (endAt[at] === start || (supposed?.seconds[at] ?? 1) <= 0))
      wrong.set(at, 'The reading ends where it begins, or before.');
  }
  const right = [...startAt.keys()].filter((at) => !wrong.has(at));
  return {
    columns,
    plain: columns === given ? supposed : plainReadings(columns, zoneIsUtc),
    wrong,
    right,
  };
}

/** Maximum length of the text that is kept of an unreadable value, in characters. */
const keptMax = 200;

/**
 * Replaces unreadable values by null, and characters that Postgres cannot hold by U+FFFD. Adds
 * `unreadable` with the texts as the service sent them, if there are any.
 */
function readableColumns(columns: IntervalColumns): IntervalColumns {
  const isTime = remembering(isTimeText);
  const isUnit = remembering(isHoldable);
  const isQuality = remembering(isHoldable);
  const isOdd = (at: number): boolean => {
    const [usage, updated] = [columns.usage[at] ?? null, columns.updated[at] ?? null];
    if (usage !== null && !isNumberText(usage)) return true;
    if (updated !== null && !isTime(updated)) return true;
    const { usageUnits, quality, endAt, granularitySeconds } = columns;
    // The end is not used, and therefore not checked, if the reading has a length.
    if ((granularitySeconds[at] ?? null) !== null && !isHoldable(endAt[at] ?? '')) return true;
    return !(isUnit(usageUnits[at] ?? '') && isQuality(quality[at] ?? ''));
  };
  const odd = [...columns.startAt.keys()].filter(isOdd);
  if (odd.length === 0) return columns;
  const usage = [...columns.usage];
  const updated = [...columns.updated];
  const usageUnits = [...columns.usageUnits];
  const quality = [...columns.quality];
  const endAt = [...columns.endAt];
  const unreadable: (string | null)[] = columns.startAt.map(() => null);
  for (const at of odd) {
    const texts: Record<string, string> = {};
    const take = (field: string, text: string): null => {
      const said = isHoldable(text) ? text : asSent(text);
      // A blank text is not a value.
      if (text.trim() !== '') texts[field] = said.slice(0, keptMax).toWellFormed();
      return null;
    };
    const replace = (field: string, values: (string | null)[]): void => {
      const text = values[at] ?? null;
      if (text === null || isHoldable(text)) return;
      values[at] = holdable(text);
      texts[field] = asSent(text);
    };
    replace('usageUnits', usageUnits);
    replace('quality', quality);
    if ((columns.granularitySeconds[at] ?? null) !== null) replace('end', endAt);
    const [amount, change] = [usage[at] ?? null, updated[at] ?? null];
    if (amount !== null && !isNumberText(amount)) usage[at] = take('usage', amount);
    if (change !== null && !isTimeText(change)) updated[at] = take('updated', change);
    if (Object.keys(texts).length > 0) unreadable[at] = JSON.stringify(texts);
  }
  return { ...columns, usage, updated, usageUnits, quality, endAt, unreadable };
}

const isHoldable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();

/** Returns a check that remembers the last text: readings mostly have the same. */
function remembering(check: (text: string) => boolean): (text: string) => boolean {
  let last: string | undefined;
  let passed = false;
  return (text) => {
    if (text !== last) [last, passed] = [text, check(text)];
    return passed;
  };
}

/** Counts values that could not be read. */
export const unreadableValues = ({ unreadable }: IntervalColumns): number =>
  (unreadable ?? []).reduce(
    (sum, texts) => sum + (texts === null ? 0 : Object.keys(JSON.parse(texts)).length),
    0,
  );

/** A time that compares as text and casts exactly: UTC or no zone, no hour 24 or second 60. */
const plainTime = /^\d{4}-\d{2}-\d{2}T(?:[01]\d|2[0-3]):\d{2}:[0-5]\d(?:\.\d{1,6})?Z?$/;

const sameShape = (text: string, first: string): boolean =>
  text.length === first.length &&
  text.endsWith('Z') === first.endsWith('Z') &&
  plainTime.test(text);

/** Returns a function that computes seconds between times, and remembers the last end. */
function distances(first: string): (start: string, end: string) => number {
  const zone = first.endsWith('Z') ? '' : 'Z';
  let last = '';
  let lastMs = 0;
  return (start, end) => {
    const startMs = start === last ? lastMs : Date.parse(start + zone);
    last = end;
    lastMs = Date.parse(end + zone);
    return (lastMs - startMs) / 1000;
  };
}

/** Formats plain readings as COPY text. */
export function copyText(
  meterId: string,
  syncedAt: string,
  columns: IntervalColumns,
  seconds: readonly number[],
): string {
  const { startAt, usage, usageUnits, quality, updated } = columns;
  const meter = escapeCopy(meterId);
  let text = '';
  for (let at = 0; at < startAt.length; at++) {
    text += `${meter}\t${startAt[at]}\t${seconds[at]}\t${escapeCopy(usageUnits[at] ?? '')}\t${copyValue(usage[at])}\t`;
    text += `${copyValue(quality[at])}\t${copyValue(updated[at])}\t${syncedAt}\n`;
  }
  return text;
}

const copyValue = (value: string | null | undefined): string =>
  value == null ? '\\N' : escapeCopy(value);

const special = /[\\\t\n\r]/;
const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
};

function escapeCopy(text: string): string {
  return special.test(text) ? text.replace(/[\\\t\n\r]/g, (c) => escapes[c] ?? c) : text;
}

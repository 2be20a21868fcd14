import { isNumberText, isTimeText } from '../../contract/values.ts';
import { elementsAt } from '../connection/arrays.ts';
import { asSent, holdable } from '../records/unholdable.ts';

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
  ofEach(columns, (values) => elementsAt(values, places));

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

/** Maximum length of the text that is kept of an unreadable value, in characters. */
const keptMax = 200;

/**
 * Replaces unreadable values by null, and characters that Postgres cannot hold by U+FFFD. Adds
 * `unreadable` with the texts as the service sent them, if there are any.
 */
export function readableColumns(columns: IntervalColumns): IntervalColumns {
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

/** A time that casts exactly as text: in UTC or without a zone, without an hour 24 or a second 60. */
const plainTime = /^\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?Z?$/;
/** Such a time that certainly exists. */
const certainTime =
  /^(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?Z?$/;

const isPlain = (time: string): boolean =>
  certainTime.test(time) || (plainTime.test(time) && isTimeText(time));

/** Starts in UTC with microseconds, and lengths in seconds. */
export interface PlainTimes {
  readonly startAt: string[];
  readonly seconds: number[];
}

/**
 * Reads times without asking Postgres; undefined if one of them is not a plain ISO time of one shape. They must end
 * in Z, or be in UTC without a zone (`zoneIsUtc`).
 */
export function plainTimes(columns: IntervalColumns, zoneIsUtc: boolean): PlainTimes | undefined {
  const { endAt, granularitySeconds } = columns;
  const first = columns.startAt[0] ?? '';
  const inUtc = first.endsWith('Z');
  if (!(zoneIsUtc || inUtc) || !isPlain(first)) return undefined;
  const isAlike = (time: string) =>
    time.length === first.length && time.endsWith('Z') === inUtc && isPlain(time);
  const isPlainChange = remembering(
    (time) => plainTime.test(time) && (zoneIsUtc || time.endsWith('Z')),
  );
  const distance = distances(first);
  const before = inUtc ? first.length - 1 : first.length;
  const fraction = `${before === 19 ? '.' : ''}${'0'.repeat(before === 19 ? 6 : 26 - before)}Z`;
  const startAt: string[] = [];
  const seconds: number[] = [];
  let end = '';
  for (const [at, start] of columns.startAt.entries()) {
    if (start !== end && !isAlike(start)) return undefined;
    const change = columns.updated[at] ?? null;
    if (change !== null && !isPlainChange(change)) return undefined;
    const granularity = granularitySeconds[at] ?? null;
    if (granularity === null) {
      end = endAt[at] ?? '';
      if (!isAlike(end)) return undefined;
    }
    const length = granularity ?? distance(start, end);
    if (!Number.isInteger(length)) return undefined;
    startAt.push(start.slice(0, before) + fraction);
    seconds.push(length);
  }
  return { startAt, seconds };
}

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

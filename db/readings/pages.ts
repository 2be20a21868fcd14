import { sql } from 'drizzle-orm';
import { isTimeText } from '../../contract/values.ts';
import { array, elementsAt } from '../connection/arrays.ts';
import type { Executor, Warehouse } from '../connection/connect.ts';
import { splitOnRefusal, sqlMessage } from '../connection/failures.ts';
import { type RejectedRecord, readingOf } from '../records/rejected.ts';
import { isoTime } from './ranges.ts';
import { type IntervalColumns, type PlainTimes, plainTimes, readableColumns } from './texts.ts';

/** Readings as Postgres casts them, as columns with one element per reading, in the order of their starts. */
export interface Readings {
  /** Starts in UTC with microseconds, so that they sort as texts. */
  readonly startAt: readonly string[];
  readonly seconds: readonly number[];
  /** Exact decimal text. */
  readonly usage: readonly (string | null)[];
  readonly usageUnits: readonly string[];
  readonly quality: readonly (string | null)[];
  readonly updated: readonly (string | null)[];
  /** The fields that could not be read with their texts, as JSON. */
  readonly unreadable: readonly (string | null)[];
  /** The ids of the records, which distinguish readings of the same time. No column stores them. */
  readonly id: readonly (string | null)[];
}

/** A page of readings in memory. */
export interface ReadingsPage {
  /** The readings; as JSON, once the page is packed, they take a small part of the memory. */
  readonly content: Readings | string;
  readonly readings: number;
  readonly first: string;
  readonly last: string;
  /** Whether no two of its readings start at the same time. */
  readonly distinct: boolean;
  /** Values that could not be read. */
  readonly unreadable: number;
  /** The months in which its readings start, for example `2026-01`. */
  readonly months: readonly string[];
}

const noReadings: Readings = {
  startAt: [],
  seconds: [],
  usage: [],
  usageUnits: [],
  quality: [],
  updated: [],
  unreadable: [],
  id: [],
};

/**
 * Makes readings of a page ready to be written. Values that cannot be read become null, and `unreadable` has their
 * texts. `wrong` has the reasons, by place in the page, why no row can hold a reading.
 */
export async function readyReadings(
  { db, zoneIsUtc }: Pick<Warehouse, 'db' | 'zoneIsUtc'>,
  given: IntervalColumns,
): Promise<{ readings: Readings; wrong: ReadonlyMap<number, string> }> {
  const columns = readableColumns(given);
  const { usage, quality, updated, unreadable, id } = columns;
  const usageUnits = columns.usageUnits.map((unit) => unit ?? '');
  const wrong = new Map<number, string>();
  const plain = plainTimes(columns, zoneIsUtc);
  const timed = plain ? { ...plain, updated } : await parsedTimes(db, columns, wrong);
  for (const [place, seconds] of timed.seconds.entries()) {
    const reason = wrong.has(place) ? undefined : whyUnfit(timed.startAt[place] ?? '', seconds);
    if (reason !== undefined) wrong.set(place, reason);
  }
  const texts = unreadable ?? columns.startAt.map(() => null);
  const all: Readings = {
    startAt: timed.startAt,
    seconds: timed.seconds,
    usage,
    usageUnits,
    quality,
    updated: timed.updated,
    unreadable: texts,
    id,
  };
  const places = [...timed.startAt.keys()].filter((place) => !wrong.has(place));
  const fit = wrong.size === 0 ? all : ofEach(all, (values) => elementsAt(values, places));
  return { readings: sorted(fit), wrong };
}

const secondsMax = 2 ** 31 - 1;
const startLength = '2026-01-01T00:00:00.000000Z'.length;

function whyUnfit(start: string, seconds: number): string | undefined {
  if (seconds <= 0) return 'The reading ends where it begins, or before.';
  if (seconds > secondsMax) return `The reading is longer than ${secondsMax} seconds.`;
  if (start.length !== startLength || start.startsWith('0000'))
    return 'The reading does not start in the years 1 to 9999.';
  return undefined;
}

/** Has Postgres read times; adds to `wrong` what cannot be read, whose times are empty. */
async function parsedTimes(
  db: Executor,
  { startAt, endAt, granularitySeconds, updated }: IntervalColumns,
  wrong: Map<number, string>,
): Promise<PlainTimes & { readonly updated: (string | null)[] }> {
  const times = {
    startAt: startAt.map(() => ''),
    seconds: startAt.map(() => 0),
    updated: startAt.map((): string | null => null),
  };
  for (const [place, start] of startAt.entries()) {
    const end = (granularitySeconds[place] ?? null) === null ? (endAt[place] ?? '') : null;
    const bad = [start, end].find((time) => time !== null && !isTimeText(time));
    if (bad !== undefined) wrong.set(place, `Cannot read ${JSON.stringify(bad)} as a time.`);
  }
  const places = [...startAt.keys()].filter((place) => !wrong.has(place));
  const parse = async (some: readonly number[]): Promise<void> => {
    const of = <T>(values: readonly T[]) => some.map((place) => values[place] ?? null);
    const { rows } = await db.execute<{
      start: string;
      seconds: number;
      updated: string | null;
    }>(sql`
      select
        ${isoTime(sql`start_at`)}
          || case when start_at < '0001-01-01T00:00:00Z' then ' BC' else '' end as start,
        coalesce(
          granularity, extract(epoch from metersync.read_time(ends) - start_at)::bigint
        )::float8 as seconds,
        metersync.read_time(changed)::text as updated
      from unnest(
          ${array(of(startAt), 'text')},
          ${array(of(endAt), 'text')},
          ${array(of(granularitySeconds), 'bigint')},
          ${array(of(updated), 'text')}
        ) with ordinality as t (starts, ends, granularity, changed, place)
        cross join lateral (select metersync.read_time(starts) as start_at) times
      order by place`);
    for (const [at, row] of rows.entries()) {
      const place = some[at] as number;
      times.startAt[place] = row.start;
      times.seconds[place] = row.seconds;
      times.updated[place] = row.updated;
    }
  };
  await splitOnRefusal(places, parse, (place, error) => {
    wrong.set(place, sqlMessage(error));
  });
  return times;
}

/** Makes a page of readings; undefined if there are none. */
export function pageOf(content: Readings): ReadingsPage | undefined {
  const { startAt, unreadable } = content;
  const [first, last] = [startAt[0], startAt.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const months = new Set<string>();
  let month = '-';
  for (const start of startAt) {
    if (start.startsWith(month)) continue;
    month = start.slice(0, 7);
    months.add(month);
  }
  return {
    content,
    readings: startAt.length,
    first,
    last,
    distinct: isDistinct(content),
    unreadable: unreadable.reduce(
      (sum, texts) => sum + (texts === null ? 0 : Object.keys(JSON.parse(texts)).length),
      0,
    ),
    months: [...months],
  };
}

/** Whether no two readings start at the same time. */
export const isDistinct = ({ startAt }: Readings): boolean =>
  startAt.every((start, at) => start !== startAt[at - 1]);

/** Packs a page. Equal pages have equal texts. */
export const packed = (page: ReadingsPage): ReadingsPage & { readonly content: string } => ({
  ...page,
  content:
    typeof page.content === 'string'
      ? page.content
      : JSON.stringify(ofEach(page.content, shortened)),
});

/** A column without its repetitions if all its values are the same. */
const shortened = <T>(values: readonly T[]): readonly T[] =>
  values.every((value) => value === values[0]) ? values.slice(0, 1) : values;

export function unpacked({ content, readings }: ReadingsPage): Readings {
  if (typeof content !== 'string') return content;
  const repeated = <T>(values: readonly T[]): readonly T[] =>
    values.length === readings ? values : new Array<T>(readings).fill(values[0] as T);
  return ofEach(JSON.parse(content) as Readings, repeated);
}

/** Orders pages by their first starts. */
export const byStart = (pages: readonly ReadingsPage[]): ReadingsPage[] =>
  pages.toSorted((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));

/**
 * Yields the readings of pages in the order of their starts, in parts of about `size` readings; readings that start
 * at the same time are in one part. Pages that do not overlap are unpacked one at a time. Without readings, yields
 * one empty part.
 */
export function* inOrder(pages: readonly ReadingsPage[], size: number): Generator<Readings> {
  const ordered = byStart(pages);
  const overlap = ordered.some(({ first }, at) => first < (ordered[at - 1]?.last ?? ''));
  const sources = overlap ? [sorted(joined(ordered.map(unpacked)))] : ordered;
  let waiting: Readings[] = [];
  let count = 0;
  for (const source of sources) {
    const more = 'content' in source ? unpacked(source) : source;
    waiting.push(more);
    count += more.startAt.length;
    if (count <= size) continue;
    const all = joined(waiting);
    let from = 0;
    for (let to = cutAfter(all, from, size); to < count; to = cutAfter(all, from, size)) {
      yield ofEach(all, (values) => values.slice(from, to));
      from = to;
    }
    waiting = [ofEach(all, (values) => values.slice(from))];
    count -= from;
  }
  yield waiting.length === 1 ? (waiting[0] as Readings) : joined(waiting);
}

/** Where a part of about `size` readings ends: readings with the same start stay together. */
function cutAfter({ startAt }: Readings, from: number, size: number): number {
  let to = Math.min(from + size, startAt.length);
  while (to < startAt.length && startAt[to] === startAt[to - 1]) to += 1;
  return to;
}

function sorted(readings: Readings): Readings {
  const { startAt } = readings;
  if (startAt.every((start, at) => at === 0 || start >= (startAt[at - 1] as string)))
    return readings;
  const places = [...startAt.keys()].sort((a, b) => {
    const [one = '', other = ''] = [startAt[a], startAt[b]];
    return one < other ? -1 : one > other ? 1 : a - b;
  });
  return ofEach(readings, (values) => elementsAt(values, places));
}

const names = Object.keys(noReadings) as (keyof Readings)[];

const ofEach = (readings: Readings, pick: <T>(values: readonly T[]) => readonly T[]): Readings =>
  Object.fromEntries(
    names.map((name) => [name, pick<unknown>(readings[name])]),
  ) as unknown as Readings;

const joined = (parts: readonly Readings[]): Readings =>
  Object.fromEntries(
    names.map((name) => [name, parts.flatMap((part) => part[name] as readonly unknown[])]),
  ) as unknown as Readings;

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

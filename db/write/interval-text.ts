/** Interval readings as columns of the service's own text, one element a reading, all of the same length. */
export interface IntervalColumns {
  readonly startAt: readonly string[];
  readonly endAt: readonly (string | null)[];
  /** Seconds, where the record says it; else the distance from start to end. */
  readonly granularitySeconds: readonly (number | null)[];
  /** Exact decimal text. */
  readonly usage: readonly (string | null)[];
  readonly usageUnits: readonly (string | null)[];
  readonly quality: readonly (string | null)[];
  readonly updated: readonly (string | null)[];
}

const plainTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z?$/;

/**
 * COPY's text for readings whose times are plain ISO of one shape; undefined when they aren't, or a value needs
 * Postgres to judge it. Times stay text: only the distance of start and end, whole seconds, is computed here, which
 * needs UTC (`zoneIsUtc`) or a Z.
 */
export function copyText(
  meterId: string,
  syncedAt: string,
  columns: IntervalColumns,
  zoneIsUtc: boolean,
): { lines: string; from: string; to: string } | undefined {
  const lines: string[] = [];
  const meter = escapeCopy(meterId);
  let from = columns.startAt[0] ?? '';
  let to = from;
  const shape = from.length;
  const zoned = from.endsWith('Z');
  for (const [at, start] of columns.startAt.entries()) {
    if (start.length !== shape || start.endsWith('Z') !== zoned || !plainTime.test(start)) return undefined;
    if (!zoned && !zoneIsUtc) return undefined;
    const seconds = columns.granularitySeconds[at] ?? secondsBetween(start, columns.endAt[at] ?? null);
    if (seconds === undefined || !Number.isInteger(seconds)) return undefined;
    if (start < from) from = start;
    if (start > to) to = start;
    const values = [columns.usage[at], columns.quality[at], columns.updated[at]].map(copyValue);
    const units = escapeCopy(columns.usageUnits[at] ?? '');
    lines.push(
      `${meter}\t${start}\t${seconds}\t${units}\t${values[0]}\t${values[1]}\t${values[2]}\t${syncedAt}\n`,
    );
  }
  return { lines: lines.join(''), from, to };
}

function secondsBetween(start: string, end: string | null): number | undefined {
  if (end === null || end.length !== start.length || !plainTime.test(end)) return undefined;
  const milliseconds = Date.parse(withZone(end)) - Date.parse(withZone(start));
  return milliseconds / 1000;
}

const withZone = (text: string): string => (text.endsWith('Z') ? text : `${text}Z`);

const copyValue = (value: string | null | undefined): string => (value == null ? '\\N' : escapeCopy(value));

const special = /[\\\t\n\r]/;
const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

function escapeCopy(text: string): string {
  return special.test(text) ? text.replace(/[\\\t\n\r]/g, (c) => escapes[c] ?? c) : text;
}

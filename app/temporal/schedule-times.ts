import type { ScheduleSpecDescription } from '@temporalio/client';

/** When a schedule starts a run: by a cron expression in a time zone, or at an interval. */
export type ScheduleTimes =
  | { readonly cron: string; readonly timeZone: string }
  | { readonly everyMs: number };

/** Parses five fields of cron, perhaps after `CRON_TZ=Europe/Berlin `; undefined for anything else. */
export function parseCron(text: string): { readonly cron: string; readonly timeZone: string } | undefined {
  const [, timeZone = 'UTC', cron] = /^(?:CRON_TZ=(\S+) +)?((?:[\w*,/?-]+ +){4}[\w*,/?-]+)$/.exec(text) ?? [];
  return cron === undefined ? undefined : { cron: cron.replace(/ +/g, ' '), timeZone };
}

export const cronHasTo =
  'has to be none or five fields of cron, with a time zone before them if not in UTC, for example CRON_TZ=Europe/Berlin 30 1 * * 6';

/** Describes times in the same words as `timesOf` does for an existing schedule. */
export const describeTimes = (times: ScheduleTimes): string =>
  'cron' in times ? `${times.cron} (${times.timeZone})` : `every ${shortDuration(times.everyMs)}`;

/** Repeats a cron expression in its own comment, which Temporal keeps together with the calendars that it derives. */
export const cronComment = (cron: string): string => `# ${cron}`;

/** Describes the times of a schedule. Of calendars set in Temporal, it only says that there are some. */
export function timesOf(spec: ScheduleSpecDescription): string {
  const zone = spec.timezone === undefined || spec.timezone === '' ? 'UTC' : spec.timezone;
  const parts = [
    ...(spec.intervals ?? []).map(({ every }) => `every ${shortDuration(every)}`),
    ...(spec.calendars ?? []).map(({ comment }) => `${comment || 'a calendar set in Temporal'} (${zone})`),
  ];
  return [...new Set(parts)].join(', ') || 'no times';
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** Formats a duration in the largest unit that divides it, for example `15m`. */
export function shortDuration(ms: number): string {
  const [unit, length] = units.find(([, size]) => ms >= size && ms % size === 0) ?? ['ms', 1];
  return `${ms / length}${unit}`;
}

/** Parses `90s`, `15m`, `6h` or `1d` to milliseconds; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, count, name] = /^(\d{1,6}) ?([dhms])$/.exec(text) ?? [];
  const unit = units.find(([unitName]) => unitName === name);
  return unit === undefined ? undefined : Number(count) * unit[1];
}

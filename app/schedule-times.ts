import type { ScheduleSpecDescription } from '@temporalio/client';

/** Marks what was written, in the comment of a cron expression, which Temporal keeps beside what it makes of it. */
export const cronComment = (cron: string): string => `# ${cron}`;

/** The times of a schedule in words; of calendars that somebody else made, that there are some. */
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

/** For example `15m`: whole units, the largest that fits. */
export function shortDuration(ms: number): string {
  const [unit, length] = units.find(([, size]) => ms >= size && ms % size === 0) ?? ['ms', 1];
  return `${ms / length}${unit}`;
}

/** Milliseconds of `90s`, `15m`, `6h` or `1d`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, count, name] = /^(\d{1,6}) ?([dhms])$/.exec(text) ?? [];
  const unit = units.find(([known]) => known === name);
  return unit === undefined ? undefined : Number(count) * unit[1];
}

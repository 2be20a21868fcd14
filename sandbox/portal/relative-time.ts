import { fromText, type Micros } from '../timestamps.ts';

const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

const english = new Intl.RelativeTimeFormat('en', { numeric: 'always' });

/** A timestamp as a person says it, seen from `now`: "3 minutes ago", "in 5 hours", "just now". */
export function relativeTime(at: string, now: Micros): string {
  const seconds = Number(fromText(at) - now) / 1_000_000;
  const [unit, size] = units.find((one) => Math.abs(seconds) >= one[1]) ?? ['second', 1];
  const count = Math.trunc(seconds / size);
  return count === 0 ? 'just now' : english.format(count, unit);
}

const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' });

/** A timestamp to the second: "21 Nov 2026, 09:47:41 UTC". */
export const readableTime = (at: string): string => `${day.format(new Date(`${at.slice(0, 23)}Z`))} UTC`;

/** Every digit of a timestamp: "2026-11-21 09:47:41.123456 UTC". */
export const exactTime = (at: string): string => `${at.replace('T', ' ')} UTC`;

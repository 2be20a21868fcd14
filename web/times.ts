const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

const english = new Intl.RelativeTimeFormat('en', { numeric: 'always' });

/** Says in words how many seconds from now something is: "3 minutes ago", "in 5 hours", "just now". */
export function relativeTime(seconds: number): string {
  const [unit, size] = units.find((one) => Math.abs(seconds) >= one[1]) ?? ['second', 1];
  const count = Math.trunc(seconds / size);
  return count === 0 ? 'just now' : english.format(count, unit);
}

const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' });

/** A time to the second: "21 Nov 2026, 09:47:41 UTC". */
export const readableTime = (at: Date): string => `${day.format(at)} UTC`;

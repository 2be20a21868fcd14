/** Formats an amount. It comes as text and never becomes a float: Intl reads decimal text exactly. */
export function amount(text: string | null, places = 2): string {
  if (text === null) return '–';
  const format = new Intl.NumberFormat('en', {
    maximumFractionDigits: places,
    minimumFractionDigits: places,
    // An amount that rounds to zero has no sign.
    signDisplay: 'negative',
  });
  return format.format(text as Intl.StringNumericLiteral);
}

export const formatCount = (count: number): string => count.toLocaleString('en');

const percents = new Intl.NumberFormat('en', {
  style: 'percent',
  minimumFractionDigits: 1,
  roundingMode: 'trunc',
});

/** Formats a share from 0 to 1 as percent, rounded down, so that 100 % means all. */
export const percent = (text: string | null): string =>
  text === null ? '–' : percents.format(text as Intl.StringNumericLiteral).replace('%', ' %');

/** Formats the first day of a month as `2026-03`. */
const monthOf = (day: string): string => day.slice(0, 7);

/** Formats a month, and marks it if it had not ended at a time. */
export const monthAt = (day: string, time: string): string =>
  hasEnded(day, time) ? monthOf(day) : `${monthOf(day)} so far`;

/** Whether the month of a first day was over at a time in UTC. */
export const hasEnded = (day: string, time: string): boolean => monthOf(day) < monthOf(time);

export const timeOf = (time: string | null): string =>
  time === null ? '–' : time.replace('T', ' ').replace(/:\d\dZ$/, '');

export const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const;

/** Returns the first day (YYYY-MM-DD) of the month of a time or day. */
export const monthOf = (time: string): string => `${time.slice(0, 7)}-01`;

const monthBefore = (month: string): string => {
  const first = new Date(`${month}T00:00:00Z`);
  return monthOf(new Date(first.setUTCMonth(first.getUTCMonth() - 1)).toISOString());
};

/**
 * Returns the latest months with data, oldest first, without gaps. Future months, which come from mistyped
 * dates, are ignored, because they must not replace past months.
 */
export function monthsOf(
  rows: readonly { readonly month: string }[],
  now: string,
  monthsMax: number,
): string[] {
  const past = rows.map(({ month }) => month).filter((month) => month <= now);
  const [first, last] = [past.toSorted()[0], past.toSorted().at(-1)];
  const months: string[] = [];
  for (let month = last; month !== undefined && first !== undefined; month = monthBefore(month)) {
    if (month < first || months.length === monthsMax) break;
    months.unshift(month);
  }
  return months;
}

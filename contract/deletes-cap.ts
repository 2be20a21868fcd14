/**
 * How many rows a run may tombstone without explanation: the smaller of `rows` and `percent` of the
 * live rows, which allows at least `leastShare`. More rows are quarantined.
 */
export interface DeletesCap {
  readonly rows: number;
  readonly percent: number;
}

/** Lets a run tombstone only what is explained. */
export const onlyExplained: DeletesCap = { rows: 0, percent: 0 };

/** How many rows the percentage allows at least. */
const leastShare = 3;

/** Whether so many rows exceed the cap. The percentage allows at least `least` rows. */
export const overCap = (
  { rows, percent }: DeletesCap,
  gone: number,
  live: number,
  least = leastShare,
): boolean => gone > Math.min(rows, Math.max(least, Math.floor((live * percent) / 100)));

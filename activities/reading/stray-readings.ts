import { canonicalId } from '../../contract/ids.ts';
import { type IntervalColumns, readingsAt } from '../../db/records/interval-text.ts';
import { itemTexts } from '../../db/records/item-texts.ts';
import { type RejectedRecord, readingOf, refusedAs, refusedId } from '../../db/records/rejected-records.ts';
import type { ListedIntervals } from '../../service/intervals.ts';
import type { Page } from '../../service/page.ts';

/** Longest text of an indexed column, in characters: Postgres refuses entries of 2,704 bytes. */
const indexedMax = 500;

/** A reading that no row of the meter can hold. */
export interface Stray {
  /** The id of its refusal. */
  readonly id: string;
  /** As the service sent it. */
  readonly text: string;
  readonly reason: string;
}

/** Divides a page into the meter's own readings and strays, which belong elsewhere or cannot be stored. */
export function divideReadings(
  meterId: string,
  page: Page,
  columns: ListedIntervals,
): { readonly own: IntervalColumns; readonly strays: readonly Stray[] } {
  const reasons = columns.startAt.map((_, at) => whyStray(meterId, columns, at));
  const { unplaced } = columns;
  if (unplaced.length === 0 && reasons.every((reason) => reason === undefined))
    return { own: columns, strays: [] };
  const texts = itemTexts(page);
  const textAt = (position: number): string => texts[position] ?? '';
  const nowhere = new Set(unplaced);
  const placed = [...texts.keys()].filter((position) => !nowhere.has(position));
  return {
    own: readingsAt(
      columns,
      [...reasons.keys()].filter((at) => reasons[at] === undefined),
    ),
    strays: [
      ...reasons.flatMap((reason, at) => {
        if (reason === undefined) return [];
        const id = refusedId(readingOf(meterId, columns.startAt[at] ?? ''));
        return { id, text: textAt(placed[at] ?? -1), reason };
      }),
      ...unplaced.map((position) => {
        const text = textAt(position);
        const id = refusedId(readingOf(meterId, refusedAs({ id: page.ids[position] ?? null, text })));
        return { id, text, reason: 'the reading has no place in time' };
      }),
    ],
  };
}

function whyStray(
  meterId: string,
  { meterId: named, usageUnits }: ListedIntervals,
  at: number,
): string | undefined {
  const other = named[at] ?? meterId;
  if (other !== meterId && canonicalId(other) !== meterId) return `the reading names another meter, ${other}`;
  if ((usageUnits[at]?.length ?? 0) > indexedMax) return `the unit has more than ${indexedMax} characters`;
  return undefined;
}

/** The refusal of a stray, for `metersync.rejected_records`. */
export const refusalOf = ({ reason, ...stray }: Stray): RejectedRecord => ({
  ...stray,
  resource: 'intervals',
  companyId: null,
  error: reason,
});

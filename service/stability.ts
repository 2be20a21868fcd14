import type { Page } from './page.ts';

/** The facts of a page by which its pass is judged. */
export interface PageManifest {
  /** The requested page. */
  readonly asked: number;
  readonly currentPage: number;
  /** Null when the service gives none. */
  readonly total: number | null;
  readonly hasNext: boolean;
  readonly ids: readonly (string | null)[];
}

/**
 * The counts of a pass, small enough for a heartbeat. For a pass read by several activities: Postgres counts
 * its distinct ids.
 */
export interface PassCounts {
  readonly pages: number;
  /** Records, including repeated ones. */
  readonly rows: number;
  readonly rowsWithoutId: number;
  /** Pages answered with another page, or out of order. */
  readonly misplaced: number;
  /** Total of the first page. */
  readonly total: number | null;
  readonly totalChanged: boolean;
  /** Whether the last page said that none follows. */
  readonly ended: boolean;
}

export interface PassJudgement {
  readonly stable: boolean;
  /** Why it is not stable, for the operator; empty when it is. */
  readonly reasons: string[];
  readonly distinct: number;
  readonly total: number | null;
  readonly pages: number;
}

export function manifestOf(asked: number, page: Page): PageManifest {
  const { currentPage, total, hasNext, ids } = page;
  return { asked, currentPage, total, hasNext, ids };
}

const nothing: PassCounts = {
  pages: 0,
  rows: 0,
  rowsWithoutId: 0,
  misplaced: 0,
  total: null,
  totalChanged: false,
  ended: false,
};

/** Adds a page to the counts of its pass; undefined begins a pass. */
export function countPage(before: PassCounts | undefined, page: PageManifest): PassCounts {
  const counts = before ?? nothing;
  const inPlace = page.asked === counts.pages + 1 && page.currentPage === page.asked;
  return {
    pages: counts.pages + 1,
    rows: counts.rows + page.ids.length,
    rowsWithoutId: counts.rowsWithoutId + page.ids.filter((id) => id === null).length,
    misplaced: counts.misplaced + (inPlace ? 0 : 1),
    total: before === undefined ? page.total : counts.total,
    totalChanged: counts.totalChanged || (before !== undefined && page.total !== counts.total),
    ended: !page.hasNext,
  };
}

/**
 * Judges a pass over a listing. It is stable if:
 * - pages 1, 2, … were requested, and each was answered with itself;
 * - the last page said that none follows;
 * - no record came twice, and each has an id;
 * - every page gave the same total, which is the number of records. Without a total the other rules have to
 *   suffice.
 *
 * What a stable pass proves about a listing that changes between the reads of its pages:
 * 1. With a total: it missed as many records as it saw before they were deleted. For it saw `total` distinct
 *    records, and the listing had `total` at the last read. So if nothing was deleted during the pass, or
 *    nothing inserted, or records only moved, it saw exactly the records of the listing.
 * 2. With a total it does NOT prove that nothing was missed when a deletion and an insertion balance. Read a
 *    and b of [a b c d], delete a, insert e: the next page is [d e], c was never seen, and the pass is
 *    stable. Before an absent record counts as deleted, see `confirmsPass`.
 * 3. Without a total, a single deletion between two pages hides a record. A single insertion is noticed, as a
 *    record then comes twice.
 */
export function judgePass(manifest: readonly PageManifest[]): PassJudgement {
  let counts: PassCounts | undefined;
  for (const page of manifest) counts = countPage(counts, page);
  return judgeCounts(counts ?? nothing, idsOf(manifest).size);
}

/** Judges the counts of a pass as `judgePass` does. @param distinct how many different ids, without null */
export function judgeCounts(counts: PassCounts, distinct: number): PassJudgement {
  const { pages, rows, rowsWithoutId, misplaced, total, totalChanged, ended } = counts;
  const reasons: string[] = [];
  if (misplaced > 0) reasons.push(`${misplaced} of ${pages} pages were not the page asked for`);
  if (totalChanged) reasons.push('the total changed between pages');
  if (rowsWithoutId > 0) reasons.push(`${rowsWithoutId} records have no id`);
  const repeated = rows - rowsWithoutId - distinct;
  if (repeated > 0) reasons.push(`${repeated} records came twice`);
  if (total !== null && distinct !== total)
    reasons.push(`${distinct} distinct records of a total of ${total}`);
  if (!ended) reasons.push('the last page was not reached');
  return { stable: reasons.length === 0, reasons, distinct, total, pages };
}

/**
 * Whether a later pass proves an earlier one exact: the earlier is stable, and the later saw every record
 * that the earlier saw. Then the earlier pass saw exactly the records that the listing had when that pass
 * ended. The later pass need not be stable.
 *
 * Proof: a record that was seen, and deleted before the earlier pass ended, cannot be seen by a later one, as
 * ids don't come back. So there was no such record, and by 1. of `judgePass` none was missed either. If the
 * service gives no total, 1. holds as long as every page but the last is full.
 */
export function confirmsPass(earlier: readonly PageManifest[], later: readonly PageManifest[]): boolean {
  if (!judgePass(earlier).stable) return false;
  const seenAgain = idsOf(later);
  return [...idsOf(earlier)].every((id) => seenAgain.has(id));
}

function idsOf(manifest: readonly PageManifest[]): Set<string> {
  const ids = new Set<string>();
  for (const page of manifest) {
    for (const id of page.ids) if (id !== null) ids.add(id);
  }
  return ids;
}

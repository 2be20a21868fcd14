import type { Page } from './page.ts';

/** What a page of a pass over a listing leaves behind for the judgement of the pass. */
export interface PageManifest {
  /** The page that was asked for. */
  readonly asked: number;
  readonly currentPage: number;
  /** Null when the service gives none. */
  readonly total: number | null;
  readonly hasNext: boolean;
  readonly ids: readonly (string | null)[];
}

/**
 * A pass in numbers alone, small enough for a heartbeat: for a pass that is read in several activities, whose
 * distinct ids Postgres counts.
 */
export interface PassCounts {
  readonly pages: number;
  /** Records, repeated ones counted each time. */
  readonly rows: number;
  readonly rowsWithoutId: number;
  /** Pages that were answered with another page, or did not follow the one before. */
  readonly misplaced: number;
  /** Of the first page. */
  readonly total: number | null;
  readonly totalChanged: boolean;
  /** The last page said that none follows. */
  readonly ended: boolean;
}

export interface PassJudgement {
  readonly stable: boolean;
  /** Why not, in words for the operator; empty when stable. */
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

/** Adds a page to the numbers of its pass; undefined begins one. */
export function countPage(before: PassCounts | undefined, page: PageManifest): PassCounts {
  const so = before ?? nothing;
  const inPlace = page.asked === so.pages + 1 && page.currentPage === page.asked;
  return {
    pages: so.pages + 1,
    rows: so.rows + page.ids.length,
    rowsWithoutId: so.rowsWithoutId + page.ids.filter((id) => id === null).length,
    misplaced: so.misplaced + (inPlace ? 0 : 1),
    total: before === undefined ? page.total : so.total,
    totalChanged: so.totalChanged || (before !== undefined && page.total !== so.total),
    ended: !page.hasNext,
  };
}

/**
 * Judges a pass over a listing: stable when pages 1, 2, … were asked for and each answered with itself, the last
 * said that none follows, no record came twice, and every page gave the same total, which is the number of
 * records. Where the service gives no total, the rest of the rule has to do.
 *
 * What the verdict proves, for a listing that changes between the reads of its pages:
 * 1. With a total: as many records were missed as were seen and then deleted. For the pass saw `total` distinct
 *    records, and the listing held `total` at the last read. So if nothing was deleted during the pass, or
 *    nothing inserted, or records only changed places, it saw exactly what there is.
 * 2. With a total it does NOT prove that nothing was missed when a deletion and an insertion balance: read a
 *    and b of [a b c d], delete a, insert e, and the next page is [d e]: c was never seen and the pass is stable.
 *    Before a record is called deleted for being absent, see `confirmsPass`.
 * 3. Without a total, a deletion alone between two pages hides a record; an insertion alone still shows, as a
 *    record that comes twice.
 */
export function judgePass(manifest: readonly PageManifest[]): PassJudgement {
  let counts: PassCounts | undefined;
  for (const page of manifest) counts = countPage(counts, page);
  return judgeCounts(counts ?? nothing, idsOf(manifest).size);
}

/** The rule of `judgePass` over numbers. @param distinct ids, without those that are null */
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
 * Whether a later pass proves an earlier one exact: the earlier is stable, and the later saw every record that the
 * earlier saw. Then the earlier pass missed nothing that the listing held when it ended, and saw nothing that was
 * gone by then. The later pass need not be stable.
 *
 * Proof: a record that was seen and then deleted before the earlier pass ended cannot be seen by a later one, as
 * ids don't come back. So there was no such record, and by 1. of `judgePass` none was missed either. Where the
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

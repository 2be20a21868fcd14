import { agreeing, counted } from '../contract/words.ts';
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

/**
 * Judges a pass over a listing. It is stable if:
 * - pages 1, 2, … were requested, and each answer was the requested page;
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
  const pages = manifest.length;
  const total = manifest[0]?.total ?? null;
  const distinct = idsOf(manifest).size;
  const rows = manifest.reduce((sum, { ids }) => sum + ids.length, 0);
  const withoutId = manifest.reduce((sum, { ids }) => sum + ids.filter((id) => id === null).length, 0);
  const misplaced = manifest.filter(
    ({ asked, currentPage }, at) => asked !== at + 1 || currentPage !== asked,
  ).length;
  const reasons: string[] = [];
  if (misplaced > 0)
    reasons.push(
      `${misplaced} of ${counted(pages, 'page')} ${agreeing(misplaced, 'was', 'were')} not the requested page`,
    );
  if (manifest.some((page) => page.total !== total)) reasons.push('the total changed between pages');
  if (withoutId > 0)
    reasons.push(`${counted(withoutId, 'record')} ${agreeing(withoutId, 'has', 'have')} no id`);
  const repeated = rows - withoutId - distinct;
  if (repeated > 0) reasons.push(`${counted(repeated, 'record')} came twice`);
  if (total !== null && distinct !== total)
    reasons.push(`${counted(distinct, 'distinct record')} of a total of ${total}`);
  if (manifest.at(-1)?.hasNext !== false) reasons.push('the last page was not reached');
  return { stable: reasons.length === 0, reasons, distinct, total, pages };
}

/**
 * Whether a later pass proves that an earlier pass was exact. It does if the earlier pass is stable, and the
 * later pass saw every record that the earlier pass saw. Then the earlier pass saw exactly the records that
 * the listing had when the earlier pass ended. The later pass need not be stable.
 *
 * Proof: a record that was seen, and deleted before the earlier pass ended, cannot be seen by a later pass, as
 * ids don't come back. So there was no such record, and by 1. of `judgePass` no record was missed either. If
 * the service gives no total, 1. holds as long as every page except the last is full.
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

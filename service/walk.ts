import { createHash } from 'node:crypto';
import type { EndpointName, ListingFilter } from '../contract/endpoints.ts';
import { jsonText } from '../contract/json.ts';
import { batches } from '../contract/limits.ts';
import type { ServiceClient } from './client.ts';
import type { Page } from './page.ts';
import { manifestOf, type PageManifest } from './stability.ts';
import type { Lane } from './throttle.ts';

interface WalkOptions {
  readonly client: Pick<ServiceClient, 'page'>;
  readonly endpoint: EndpointName;
  readonly params: Readonly<Record<string, string>>;
  readonly filters?: readonly ListingFilter[] | undefined;
  /** The first page: 1, or the cursor of an interrupted walk. */
  readonly from?: number;
  readonly lane: Lane;
  readonly signal?: AbortSignal | undefined;
  /** Whether the report has the manifest that `judgePass` needs. If false, no ids stay in memory. */
  readonly judged?: boolean;
}

/**
 * Why a walk ended: no page follows (`last`); another page than the requested one was answered, because the
 * listing became shorter (`shrunk`); pages repeat or go in circles (`repeated`); too many pages (`bound`).
 */
type WalkEnd = 'last' | 'shrunk' | 'repeated' | 'bound';

export interface WalkReport {
  /** Null until the walk is over. */
  readonly ended: WalkEnd | null;
  readonly shrunk: boolean;
  /** Pages and records that the walk yielded. */
  readonly pages: number;
  readonly rows: number;
  /** Every page as the service answered it, for `judgePass`, including a page that was not yielded. */
  readonly manifest: readonly PageManifest[];
}

/** Yields pages in order, once. Gives a page's memory back at the next request or at the end of the walk. */
export interface Walk extends AsyncIterable<Page> {
  report(): WalkReport;
  /** Keeps the memory of the page that was yielded last; returns the function that gives it back. */
  keep(): () => void;
}

/**
 * Walks a listing page by page until the service says that none follows. Beyond the last page the service
 * answers with the last page (service.md 7), so each answer is compared with the requested page. If the
 * service does not say where its listing ends, an empty, repeated or unexpected page ends the walk.
 * @throws Failure of the client; the signal's reason when it aborts
 */
export function walkPages(options: WalkOptions): Walk {
  const { client, endpoint, params, filters, from = 1, lane, signal, judged = true } = options;
  const manifest: PageManifest[] = [];
  let ended: WalkEnd | null = null;
  let pages = 0;
  let rows = 0;
  let release = (): void => undefined;
  const keep = (): (() => void) => {
    const kept = release;
    release = () => undefined;
    return kept;
  };
  const hold = (given: () => void): void => {
    release = given;
  };

  async function* read(): AsyncGenerator<Page, void, undefined> {
    try {
      yield* readPages();
    } finally {
      release();
    }
  }

  async function* readPages(): AsyncGenerator<Page, void, undefined> {
    let before: PageBefore | undefined;
    let pagesMax = Number.POSITIVE_INFINITY;
    let circling: ((page: Page) => boolean) | undefined;
    for (let asked = from; ; asked++) {
      const page = await client.page({ endpoint, params, filters, page: asked, lane, signal, hold });
      const repeats = before !== undefined && isSame(before, page);
      const end = page.currentPage !== asked ? 'shrunk' : repeats ? 'repeated' : undefined;
      if (end !== undefined && before !== undefined && !before.hasExplicitEnd) {
        // The listing ended with the page before, which could not say so.
        if (judged) manifest.push({ ...(manifest.pop() as PageManifest), hasNext: false });
        ended = 'last';
        return;
      }
      if (judged) manifest.push(manifestOf(asked, page));
      if (end !== undefined) {
        ended = end;
        return;
      }
      if (before === undefined) {
        pagesMax = pagesMaxOf(page, from);
        if (judged && page.totalPages === null) circling = goesInCircles();
      }
      if (circling?.(page)) {
        ended = 'repeated';
        return;
      }
      pages += 1;
      rows += page.count;
      before = { ids: page.ids, hasExplicitEnd: page.hasExplicitEnd, digest: digestOf(page) };
      // Set before the page is yielded: the caller may leave the loop at any page.
      if (!page.hasNext) ended = 'last';
      else if (pages >= pagesMax) ended = 'bound';
      yield page;
      // There is nothing left to release if the caller kept the page.
      const releasePage = keep();
      releasePage();
      if (ended !== null) return;
    }
  }

  const iterator = read();
  return {
    [Symbol.asyncIterator]: () => iterator,
    keep,
    report: () => ({ ended, shrunk: ended === 'shrunk', pages, rows, manifest: [...manifest] }),
  };
}

function pagesMaxOf(first: Page, from: number): number {
  if (first.totalPages === null) return batches.pagesUnannounced;
  const announced = Math.max(first.totalPages - from + 1, 1);
  return announced + Math.max(batches.pagesOverAnnounced, Math.ceil(announced / 10));
}

/**
 * Returns a function that says after each page whether the listing goes in circles: the pages in a row without
 * a new id are as many as all pages before them. Fewer prove nothing: a growing listing repeats records.
 */
function goesInCircles(): (page: Page) => boolean {
  const seen = new Set<string | null>();
  let earlier = 0;
  let nothingNew = 0;
  return ({ ids }) => {
    if (ids.length === 0) return false;
    const known = seen.size;
    for (const id of ids) seen.add(id);
    // Records without ids may be new.
    const isNew = seen.size > known || ids.includes(null);
    if (!isNew) return ++nothingNew >= earlier;
    earlier += nothingNew + 1;
    nothingNew = 0;
    return false;
  };
}

/** What the next page is compared with. The page itself would have to stay in memory. */
interface PageBefore extends Pick<Page, 'ids' | 'hasExplicitEnd'> {
  /** Digest of the records, if not all of them have ids. */
  readonly digest: string | undefined;
}

function digestOf({ ids, items, body }: Page): string | undefined {
  if (!ids.includes(null)) return undefined;
  return createHash('sha256')
    .update(jsonText(items) ?? body)
    .digest('base64');
}

function isSame(before: PageBefore, page: Page): boolean {
  if (before.ids.length !== page.ids.length || before.digest !== digestOf(page)) return false;
  return before.ids.every((id, position) => id === page.ids[position]);
}

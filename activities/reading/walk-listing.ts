import { batches } from '../../contract/limits.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import { nothingWritten, type PageWritten, sum } from '../../db/records/write-page.ts';
import type { ListedResource } from '../../db/resources.ts';
import type { Page } from '../../service/page.ts';
import { type Walk, type WalkReport, walkPages } from '../../service/walk.ts';
import { cancellation, noteCursor } from '../activity-context.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { type PageWrite, write } from './page-write.ts';

type Lane = 'live' | 'backfill';

export interface ListingWalk {
  readonly listing: ListedResource;
  readonly companyId: string | null;
  readonly params: Readonly<Record<string, string>>;
  readonly lane: Lane;
  readonly from?: number;
  /** The warehouse's clock before the walk; read when absent. */
  readonly beganAt?: string | undefined;
  /** When the walk began that this one continues; absent if it begins here. */
  readonly walkBegan?: string | undefined;
  /** See `RecordPage`. */
  readonly existingOnly?: boolean;
  /** Notes pages whose rows are in Postgres. Returns the warehouse's clock. */
  readonly note?: (pages: readonly PageRead[]) => Promise<string>;
  /** Called when the rows of pages are in Postgres; returns from where to resume. */
  readonly onWritten?: (pages: readonly PageRead[], written: PageWritten) => unknown;
}

/** Walks a listing and writes pages that are ready together while it reads ahead. */
export async function walkListing(
  deps: ActivityDependencies,
  walk: ListingWalk,
): Promise<{ report: WalkReport; written: PageWritten; ids: string[]; beganAt: string }> {
  const { listing, params, lane, from = 1 } = walk;
  const { db } = deps.warehouse;
  const signal = cancellation();
  const stopped = new AbortController();
  const pages = walkPages({
    client: deps.service,
    endpoint: listing,
    params,
    from,
    lane,
    signal: AbortSignal.any([signal, stopped.signal]),
  });
  const beganAt = walk.beganAt ?? (await warehouseNow(db));
  const dated = { ...walk, walkBegan: walk.walkBegan ?? beganAt };
  let clock = beganAt;
  let written = nothingWritten;
  const ids: string[] = [];
  const ahead = { from, clock: () => clock, stop: () => stopped.abort(), keep: pages.keep };
  for await (const read of readAhead(pages, ahead)) {
    signal.throwIfAborted();
    for (const group of groupByItemsKey(read))
      written = sum(written, await write(deps, arrivalOf(dated, group)));
    const now = await walk.note?.(read);
    for (const { page } of read) for (const id of page.ids) if (id !== null) ids.push(id);
    const cursor = walk.onWritten?.(read, written);
    if (cursor !== undefined) noteCursor(cursor);
    if (read.at(-1)?.page.hasNext === true) clock = now ?? (await warehouseNow(db));
  }
  return { report: pages.report(), written, ids, beganAt };
}

/** Groups neighbouring pages whose records are under the same key. */
function groupByItemsKey(read: readonly PageRead[]): PageRead[][] {
  const groups: PageRead[][] = [];
  for (const pageRead of read) {
    const last = groups.at(-1);
    if (last?.[0]?.page.itemsKey === pageRead.page.itemsKey) last.push(pageRead);
    else groups.push([pageRead]);
  }
  return groups;
}

/** Joins pages into one write. All of it counts as read when the first of the pages was read. */
function arrivalOf(
  { listing, companyId, lane, walkBegan, existingOnly }: ListingWalk,
  read: readonly PageRead[],
): PageWrite & { readonly page: Pick<Page, 'items'> } {
  const [first] = read;
  if (first === undefined) throw new Error('no page was read');
  // A backfill settles no events here: it reads usage from its own listing next.
  const confirms = lane === 'live';
  const { readAt } = first;
  const more = { listing, companyId, readAt, walkBegan, existingOnly, confirms } as const;
  if (read.length === 1) return { ...more, page: first.page };
  const pages = read.map(({ page }) => page);
  return {
    ...more,
    page: {
      body: `[${pages.map(({ body }) => body).join(',')}]`,
      itemsKey: first.page.itemsKey,
      joined: true,
      ids: pages.flatMap(({ ids }) => ids),
      items: pages.flatMap(({ items }) => items),
    },
  };
}

/** A page, the number that was requested, and the warehouse's clock before the request. */
export interface PageRead {
  readonly page: Page;
  readonly asked: number;
  readonly readAt: string;
}

/**
 * Yields pages in their order, as many as are ready, and reads on while the consumer works. If a page fails,
 * the earlier pages are yielded before the failure is thrown. `clock` gives a time of the warehouse and is
 * called when a request begins, so `readAt` is never too late. `stop` aborts the request in flight when the
 * consumer stops. `keep` reserves memory for a page until the consumer has finished with it.
 */
export async function* readAhead(
  source: AsyncIterable<Page>,
  {
    from,
    clock,
    stop,
    keep,
  }: {
    readonly from: number;
    readonly clock: () => string;
    readonly stop: () => void;
    readonly keep: Walk['keep'];
  },
): AsyncGenerator<PageRead[], void, undefined> {
  const iterator = source[Symbol.asyncIterator]();
  const ready: (PageRead & { readonly release: () => void })[] = [];
  let characters = 0;
  let over = false;
  let failure: { readonly error: unknown } | undefined;
  let arrived = Promise.withResolvers<void>();
  let taken = Promise.withResolvers<void>();

  const read = async (): Promise<void> => {
    try {
      for (let asked = from; !over; asked++) {
        const readAt = clock();
        const { done, value: page } = await iterator.next();
        if (done === true) break;
        ready.push({ page, asked, readAt, release: keep() });
        characters += page.body.length;
        arrived.resolve();
        while (!over && (ready.length >= batches.pagesAhead || characters >= batches.charactersAhead))
          await taken.promise;
      }
    } catch (error) {
      failure = { error };
    }
    over = true;
    arrived.resolve();
  };
  const reading = read();
  try {
    for (;;) {
      while (ready.length === 0 && !over) {
        await arrived.promise;
        arrived = Promise.withResolvers();
      }
      if (ready.length === 0) break;
      const pages = ready.splice(0);
      characters = 0;
      taken.resolve();
      taken = Promise.withResolvers();
      try {
        yield pages;
      } finally {
        for (const { release } of pages) release();
      }
    }
    if (failure !== undefined) throw failure.error;
  } finally {
    over = true;
    taken.resolve();
    stop();
    await reading;
    for (const { release } of ready) release();
  }
}

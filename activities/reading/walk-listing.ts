import { warehouseNow } from '../../db/queue/due.ts';
import type { Cte } from '../../db/records/page.ts';
import { nothingWritten, type PageWritten, sum } from '../../db/records/write-page.ts';
import type { ListedResource } from '../../db/resources.ts';
import type { Page } from '../../service/page.ts';
import { type WalkReport, walkPages } from '../../service/walk.ts';
import { cancellation } from '../cancellation.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { noteCursor } from '../heartbeat.ts';
import { type PageWrite, write } from './page-write.ts';
import { type PageRead, readAhead } from './read-ahead.ts';

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
  /** A step that notes pages in the statement of their rows. */
  readonly noting?: (pages: readonly PageRead[]) => Cte;
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
    let now: string | undefined;
    for (const group of groupByItemsKey(read)) {
      const part = await write(deps, arrivalOf(dated, group));
      written = sum(written, part);
      now = part.now;
    }
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
  { listing, companyId, lane, walkBegan, existingOnly, noting }: ListingWalk,
  read: readonly PageRead[],
): PageWrite & { readonly page: Pick<Page, 'items'> } {
  const [first] = read;
  if (first === undefined) throw new Error('no page was read');
  // A backfill settles no events here: it reads usage from its own listing next.
  const confirms = lane === 'live';
  const { readAt } = first;
  const noted = noting?.(read);
  const more = { listing, companyId, readAt, walkBegan, existingOnly, confirms, noted } as const;
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

import { batches } from '../../contract/limits.ts';
import type { Page } from '../../service/page.ts';
import type { Walk } from '../../service/walk.ts';

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

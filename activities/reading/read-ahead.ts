import type { Page } from '../../service/page.ts';

/**
 * Pages that are read ahead of the one that is being written, and characters of their text: whichever comes first. A page that
 * begins below the bound may be as long as the client takes one.
 */
const pagesMax = 4;
const charactersMax = 4_000_000;

/** A page, the number that it was asked for by, and when its request had not yet begun, by the warehouse's clock. */
export interface PageRead {
  readonly page: Page;
  readonly asked: number;
  readonly readAt: string;
}

/**
 * Gives out pages in their order, as many together as were read by then, and reads on meanwhile. `clock` says what the
 * warehouse's clock was before now: it is looked at as each request begins, so a page's `readAt` is never newer than that.
 * Pages that were read are given out before the failure of the next. `stop` ends the request that is under way when
 * nobody takes its page any more.
 */
export async function* readAhead(
  source: AsyncIterable<Page>,
  { from, clock, stop }: { readonly from: number; readonly clock: () => string; readonly stop: () => void },
): AsyncGenerator<PageRead[], void, undefined> {
  const iterator = source[Symbol.asyncIterator]();
  const ready: PageRead[] = [];
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
        ready.push({ page, asked, readAt });
        characters += page.body.length;
        arrived.resolve();
        while (!over && (ready.length >= pagesMax || characters >= charactersMax)) await taken.promise;
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
      yield pages;
    }
    if (failure !== undefined) throw failure.error;
  } finally {
    over = true;
    taken.resolve();
    stop();
    await reading;
  }
}

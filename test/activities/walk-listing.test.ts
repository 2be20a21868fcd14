import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readAhead } from '../../activities/reading/walk-listing.ts';
import type { Page } from '../../service/page.ts';

const pagesMax = 4;
const charactersMax = 4_000_000;
const pageOf = (number: number, characters = 10): Page => ({
  body: 'x'.repeat(characters),
  itemsKey: 'documents',
  items: [],
  ids: [],
  count: 0,
  currentPage: number,
  totalPages: null,
  total: null,
  hasNext: true,
  hasExplicitEnd: true,
});

/** Makes a listing whose requests end when the scheduler says so, and that notes when each request began. */
function listing(schedule: fc.Scheduler, pages: number, failsAt: number, now: () => number) {
  const began: number[] = [];
  async function* read(): AsyncGenerator<Page, void, undefined> {
    for (let number = 1; number <= pages; number++) {
      began.push(now());
      await schedule.schedule(Promise.resolve(), `page ${number}`);
      if (number === failsAt) throw new Error('the service fails');
      yield pageOf(number);
    }
  }
  return { began, pages: read() };
}

/** Keeps count of the pages whose memory is held. */
function holding() {
  const kept = new Set<object>();
  const keep = () => {
    const page = {};
    kept.add(page);
    return () => void kept.delete(page);
  };
  return { keep, count: () => kept.size };
}

describe('pages that are read ahead', () => {
  test('come once each and in order, and are never dated later than their request', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.integer({ min: 0, max: 12 }),
        fc.integer({ min: 1, max: 15 }),
        fc.integer({ min: 1, max: 5 }),
        async (schedule, count, failsAt, from) => {
          let time = 1;
          const source = listing(schedule, count, failsAt, () => time);
          const held = holding();
          const taken: number[] = [];
          const consume = async (): Promise<string> => {
            const ahead = { from, clock: () => String(time), stop: () => {}, keep: held.keep };
            try {
              for await (const ready of readAhead(source.pages, ahead)) {
                expect(ready.length).toBeGreaterThan(0);
                for (const { page, asked, readAt } of ready) {
                  expect(asked).toBe(from + page.currentPage - 1);
                  expect(Number(readAt)).toBeLessThanOrEqual(source.began[page.currentPage - 1] as number);
                  taken.push(page.currentPage);
                }
                expect(held.count()).toBeGreaterThanOrEqual(ready.length);
                await schedule.schedule(Promise.resolve(), 'written');
                // Meanwhile no more pages than the bound were read, and one more request is in flight.
                expect(source.began.length).toBeLessThanOrEqual(taken.length + pagesMax + 1);
                time += 1;
              }
              return 'end';
            } catch (error) {
              return (error as Error).message;
            }
          };
          const end = await schedule.waitFor(consume());
          const fails = failsAt <= count;
          expect(end).toBe(fails ? 'the service fails' : 'end');
          expect(held.count()).toBe(0);
          expect(taken).toEqual(Array.from({ length: fails ? failsAt - 1 : count }, (_, at) => at + 1));
        },
      ),
    );
  });

  test('stay within the bound of characters, even if there are few pages', async () => {
    let read = 0;
    async function* long(): AsyncGenerator<Page, void, undefined> {
      for (read = 1; ; read++) yield pageOf(read, charactersMax / 2 + 1);
    }
    const stopped: string[] = [];
    const held = holding();
    const ahead = { from: 1, clock: () => '', stop: () => void stopped.push('stopped'), keep: held.keep };
    const pages = readAhead(long(), ahead);
    const { value: first } = await pages.next();
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    const second = await pages.next();
    expect([first?.length, (second.value ?? []).length]).toEqual([1, 2]);
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    // Two pages are ready. A third page would exceed the bound.
    expect(read).toBe(5);
    expect(held.count()).toBe(4);
    await pages.return();
    expect(held.count()).toBe(0);
    expect(stopped).toEqual(['stopped']);
    expect(read).toBe(5);
  });

  test('abort the request in flight when the consumer fails, and wait until it has ended', async () => {
    const stop = new AbortController();
    let ended = false;
    const held = holding();
    async function* slow(): AsyncGenerator<Page, void, undefined> {
      yield pageOf(1);
      await new Promise((_, reject) =>
        stop.signal.addEventListener('abort', () => reject(new Error('aborted'))),
      );
      ended = true;
    }
    const writing = async () => {
      const ahead = { from: 1, clock: () => '', stop: () => stop.abort(), keep: held.keep };
      for await (const _ of readAhead(slow(), ahead)) throw new Error('Postgres is away');
    };
    await expect(writing()).rejects.toThrow('Postgres is away');
    expect([stop.signal.aborted, ended, held.count()]).toEqual([true, false, 0]);
  });
});

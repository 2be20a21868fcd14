import { describe, expect, test } from 'vitest';
import { until } from '../support/poll.ts';
import { createDoor } from './door.ts';
import type { Reply } from './scripted-server.ts';
import { documents, setup } from './setup.ts';
import { VirtualClock } from './virtual-clock.ts';

const good: Reply = { json: [] };
const busy: Reply = { status: 429, body: '', headers: { 'retry-after': '30' } };
const pages = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe('requests in flight', () => {
  test.each([10, 3, 1])('reach the limit of %i and never exceed it', async (maxConcurrency) => {
    const door = createDoor();
    const { server, client } = await setup(
      async () => {
        await door.pass();
        return good;
      },
      { maxConcurrency },
    );
    const all = Promise.all(pages(1, 50).map((page) => client.page(documents(page))));
    await until(
      `the number of requests at the door is ${maxConcurrency}`,
      () => door.waiting === maxConcurrency,
    );
    door.open();
    await all;
    expect(server.asked).toHaveLength(50);
    expect(server.inFlightMax).toBe(maxConcurrency);
  });
});

describe('requests that wait', () => {
  async function behindTheFirst() {
    const door = createDoor();
    const { server, client } = await setup(
      async () => {
        await door.pass();
        return good;
      },
      { maxConcurrency: 1 },
    );
    const first = client.page(documents(1));
    await until('the number of requests at the door is 1', () => door.waiting === 1);
    const order = async (waiting: readonly Promise<unknown>[]) => {
      door.open();
      await Promise.allSettled([first, ...waiting]);
      return server.asked.slice(1).map(({ query }) => Number(query.get('page')));
    };
    return { client, order };
  }

  test('are sent in turns, of which each lane has a share, and others go to the most urgent', async () => {
    const { client, order } = await behindTheFirst();
    const of = (lane: 'drain' | 'live' | 'backfill', from: number, to: number) =>
      pages(from, to).map((page) => client.page({ ...documents(page), lane }));
    const all = [...of('backfill', 11, 13), ...of('live', 21, 25), ...of('drain', 31, 34)];
    expect(await order(all)).toEqual([21, 31, 22, 11, 32, 23, 33, 24, 12, 34, 25, 13]);
  });

  test('have no turn any more once they are aborted', async () => {
    const { client, order } = await behindTheFirst();
    const ended = new AbortController();
    const of = (page: number, signal?: AbortSignal) =>
      client.page({ ...documents(page), lane: 'live', signal });
    const waiting = [of(2, ended.signal), of(3), of(4, ended.signal)];
    const said = Promise.allSettled(waiting);
    ended.abort(new Error('ended'));
    expect(await order(waiting)).toEqual([3]);
    expect((await said).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected']);
  });
});

describe('one 429', () => {
  test('holds back every request for its Retry-After', async () => {
    const clock = new VirtualClock();
    const { server, client } = await setup(({ number }) => (number === 1 ? busy : good), {
      clock,
      maxConcurrency: 1,
    });
    const all = Promise.all(pages(1, 40).map((page) => client.page({ ...documents(page), lane: 'live' })));
    await until('the number of sleepers is 40', () => clock.sleeping === 40);
    clock.advance(29_999);
    expect(clock.sleeping).toBe(40);
    expect(server.asked).toHaveLength(1);
    clock.advance(1);
    await all;
    expect(server.asked).toHaveLength(41);
  });

  test('that asks for less time than another does not end the wait sooner', async () => {
    const clock = new VirtualClock();
    const door = createDoor();
    const waits = new Map([
      ['1', '60'],
      ['2', '10'],
    ]);
    const { server, client, ended } = await setup(
      async ({ query, number }) => {
        const page = query.get('page') ?? '';
        if (page === '2') await door.pass();
        return number <= 2
          ? { status: 429, body: '', headers: { 'retry-after': waits.get(page) ?? '' } }
          : good;
      },
      { clock },
    );
    const both = Promise.all([1, 2].map((page) => client.page({ ...documents(page), lane: 'live' })));
    await until('the first was refused', () => ended.length === 1 && door.waiting === 1);
    door.open();
    await until('both were refused', () => ended.length === 2);
    expect(clock.sleeping).toBe(2);
    clock.advance(59_999);
    expect(clock.sleeping).toBe(2);
    expect(server.asked).toHaveLength(2);
    clock.advance(1);
    await both;
    expect(server.asked).toHaveLength(4);
  });

  test('lets live requests through first when the wait is over', async () => {
    const { server, client } = await setup(({ number }) => (number === 1 ? busy : good), {
      maxConcurrency: 1,
    });
    const backfill = pages(1, 3).map((page) => client.page(documents(page)));
    const live = pages(11, 12).map((page) => client.page({ ...documents(page), lane: 'live' }));
    await Promise.all([...backfill, ...live]);
    const order = server.asked.map(({ query }) => Number(query.get('page')));
    expect(order.slice(1, 3).sort()).toEqual([11, 12]);
  });

  test('halves the pace once for all requests in flight, and successes restore it', async () => {
    let door = createDoor();
    const limited = new Set(pages(1, 8).map(String));
    const { server, client, logged } = await setup(
      async ({ query }) => {
        await door.pass();
        return limited.delete(query.get('page') ?? '') ? busy : good;
      },
      { maxConcurrency: 8 },
    );
    /** Sends twenty requests, and returns how many were in flight at once before any answer. */
    const wave = async (expected: number): Promise<void> => {
      door = createDoor();
      server.inFlightMax = 0;
      const all = Promise.all(pages(21, 40).map((page) => client.page(documents(page))));
      await until(`the number of requests at the door is ${expected}`, () => door.waiting === expected);
      const atOnce = server.inFlightMax;
      door.open();
      await all;
      expect(atOnce).toBe(expected);
    };
    const first = Promise.all(pages(1, 8).map((page) => client.page(documents(page))));
    await until('the number of requests at the door is 8', () => door.waiting === 8);
    door.open();
    await first;
    const warned = logged.filter(({ level }) => level === 'warn');
    expect(warned).toMatchObject([{ fields: { waitMs: 30_000, concurrency: 4 } }]);
    // Eight requests succeeded since: a round of four, which allowed a fifth, and most of a round of five.
    await wave(5);
    await wave(8);
  });
});

import { describe, expect, test } from 'vitest';
import { until } from '../support/poll.ts';
import { createDoor } from './door.ts';
import type { Reply } from './scripted-server.ts';
import { documents, rejection, setup } from './setup.ts';
import { VirtualClock } from './virtual-clock.ts';

const once = { budget: { attemptsMax: 1, waitMaxMs: 0 } };
const reason = new Error('the activity was cancelled');

describe('the deadline', () => {
  const never: Reply[] = ['silence', 'trickle'];
  test.each(never)('covers the complete answer: %s', async (reply) => {
    const clock = new VirtualClock();
    const { server, client } = await setup(() => reply, { ...once, clock, timeoutMs: 30_000 });
    const error = rejection(client.page(documents()));
    await until('the number of requests at the server is 1', () => server.inFlight === 1);
    clock.advance(29_999);
    await until('the number of requests at the server is 1', () => server.inFlight === 1);
    clock.advance(1);
    expect(await error).toMatchObject({ code: 'SERVICE_UNREACHABLE' });
    expect(`${await error}`).toContain('no complete answer within 30000 ms');
    // The client closes the connection itself.
    await until('the number of requests at the server is 0', () => server.inFlight === 0);
  });

  test('belongs to each attempt, and is cleared when the answer has arrived', async () => {
    const clock = new VirtualClock();
    const { client } = await setup(() => ({ json: [] }), { clock, timeoutMs: 30_000 });
    await client.page(documents());
    expect(clock.sleeping).toBe(0);
    clock.advance(60_000);
    await client.page(documents());
  });
});

describe('an aborted signal ends a request at once', () => {
  const never: Reply[] = ['silence', 'trickle'];
  test.each(never)('while it waits for the answer: %s', async (reply) => {
    const { server, client } = await setup(() => reply);
    const controller = new AbortController();
    const error = rejection(client.page({ ...documents(), signal: controller.signal }));
    await until('the number of requests at the server is 1', () => server.inFlight === 1);
    controller.abort(reason);
    expect(await error).toBe(reason);
    await until('the number of requests at the server is 0', () => server.inFlight === 0);
    expect(server.asked).toHaveLength(1);
  });

  test('while it waits for its turn, and sends nothing', async () => {
    const door = createDoor();
    const { server, client } = await setup(
      async () => {
        await door.pass();
        return { json: [] };
      },
      { maxConcurrency: 1 },
    );
    const first = client.page(documents(1));
    const controller = new AbortController();
    const error = rejection(client.page({ ...documents(2), signal: controller.signal }));
    await until('the number of requests at the door is 1', () => door.waiting === 1);
    controller.abort(reason);
    expect(await error).toBe(reason);
    door.open();
    await first;
    expect(server.asked).toHaveLength(1);
  });

  test.each<[string, Reply]>([
    ['an attempt that failed', { status: 500, body: '' }],
    ['a Retry-After', { status: 429, body: '', headers: { 'retry-after': '50' } }],
  ])('while it waits after %s', async (_, reply) => {
    const clock = new VirtualClock();
    const { server, client, ended } = await setup(() => reply, { clock });
    const controller = new AbortController();
    const error = rejection(client.page({ ...documents(), signal: controller.signal }));
    // The deadline of the request has ended by then: the only sleep left is the wait.
    await until('the attempt failed', () => ended.length === 1);
    controller.abort(reason);
    expect(await error).toBe(reason);
    expect(clock.sleeping).toBe(0);
    expect(server.asked).toHaveLength(1);
  });

  test('before it began', async () => {
    const { server, client } = await setup(() => ({ json: [] }));
    const error = await rejection(client.page({ ...documents(), signal: AbortSignal.abort(reason) }));
    expect(error).toBe(reason);
    expect(server.asked).toEqual([]);
  });

  test('and leaves no listener on a signal that outlives it', async () => {
    const { client } = await setup(() => ({ json: [] }));
    const { signal } = new AbortController();
    const listening = new Set<unknown>();
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listening.add(args[1]);
      return addEventListener.apply(signal, args);
    };
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listening.delete(args[1]);
      return removeEventListener.apply(signal, args);
    };
    for (let page = 1; page <= 20; page++) await client.page({ ...documents(page), signal });
    await until('the number of listeners is 0', () => listening.size === 0);
  });
});

import { describe, expect, test } from 'vitest';
import type { Reply, Script } from './scripted-server.ts';
import { apiKey, documents, rejection, setup } from './setup.ts';

const good: Reply = { json: [{ id: 'd1' }] };
const refused = (status: number, headers: Record<string, string> = {}): Reply => ({
  status,
  body: 'no',
  headers,
});

/** Answers with each reply in turn, then always with the last. */
const inTurn =
  (...replies: Reply[]): Script =>
  ({ number }) =>
    replies[Math.min(number, replies.length) - 1] ?? good;

describe('a temporary failure', () => {
  const passing: [string, Reply][] = [
    ['500', refused(500)],
    ['503', refused(503)],
    ['408', refused(408)],
    ['a connection that is cut', 'hang up'],
    ['half an answer', { cut: '[' }],
    ['a web page', { body: '<html>one moment</html>' }],
  ];
  test.each(passing)('%s is retried after a wait', async (_, reply) => {
    const { server, client, clock, logged, ended } = await setup(inTurn(reply, reply, good));
    expect((await client.page(documents())).ids).toEqual(['d1']);
    expect(server.asked).toHaveLength(3);
    // Full jitter, which is one half here: of up to one second, then of up to two seconds.
    expect(clock.slept).toEqual([500, 1000]);
    expect(ended).toHaveLength(3);
    expect(ended.at(-1)).toMatchObject({ endpoint: 'documents', result: 'ok' });
    expect(logged.map(({ level }) => level)).toEqual(['debug', 'debug']);
  });

  test('fails the call after four attempts, unchanged', async () => {
    const { server, client, clock } = await setup(() => refused(502));
    expect(await rejection(client.page(documents()))).toMatchObject({ code: 'SERVICE_ERROR', status: 502 });
    expect(server.asked).toHaveLength(4);
    expect(clock.slept).toEqual([500, 1000, 2000]);
  });

  test('waits for any time between zero and the ceiling', async () => {
    const jitter = [0, 0.999, 0.25];
    const { client, clock } = await setup(() => refused(500), { random: () => jitter.shift() ?? 0 });
    await rejection(client.page(documents()));
    expect(clock.slept).toEqual([1998, 1000]);
  });

  test('waits no longer in total than its budget', async () => {
    const { server, client, clock } = await setup(() => refused(500), {
      budget: { attemptsMax: 100, waitMaxMs: 10_000 },
    });
    expect(await rejection(client.page(documents()))).toMatchObject({ code: 'SERVICE_ERROR' });
    expect(clock.slept).toEqual([500, 1000, 2000, 4000]);
    expect(server.asked).toHaveLength(5);
  });

  test('of one request does not slow down the others', async () => {
    const { server, client, clock } = await setup(({ query }) =>
      query.get('page') === '1' ? refused(500) : good,
    );
    const failing = rejection(client.page(documents(1)));
    await Promise.all(Array.from({ length: 20 }, (_, index) => client.page(documents(index + 2))));
    await failing;
    expect(server.asked).toHaveLength(24);
    expect(clock.slept).toHaveLength(3);
  });
});

describe('when the service asks to slow down', () => {
  test.each([
    ['in seconds', '7'],
    ['by a date', 'Wed, 01 Jan 2025 00:00:07 GMT'],
  ])('%s, the request waits for that time', async (_, retryAfter) => {
    const headers = { 'retry-after': retryAfter, date: 'Wed, 01 Jan 2025 00:00:00 GMT' };
    const { client, clock, ended } = await setup(inTurn(refused(429, headers), good));
    await client.page({ ...documents(), lane: 'live' });
    expect(clock.slept).toEqual([7000]);
    expect(ended.map(({ result }) => result)).toEqual(['busy', 'ok']);
  });

  test('without Retry-After, the wait is at least half of the backoff ceiling', async () => {
    const { client, clock } = await setup(() => refused(429), { random: () => 0 });
    expect(await rejection(client.page({ ...documents(), lane: 'live' }))).toMatchObject({
      code: 'SERVICE_BUSY',
      retryAfterMs: undefined,
    });
    expect(clock.slept).toEqual([500, 1000, 2000]);
  });

  test.each(['0', '0.1', 'Wed, 21 Oct 2015 07:28:00 GMT'])(
    'Retry-After %s does not shorten the wait of the backoff',
    async (retryAfter) => {
      const { client, clock } = await setup(() => refused(503, { 'retry-after': retryAfter }));
      await rejection(client.page({ ...documents(), lane: 'live' }));
      expect(clock.slept).toEqual([750, 1500, 3000]);
    },
  );

  test.each(['live', 'backfill'] as const)('for exactly the budget, a %s request waits', async (lane) => {
    const { client, clock } = await setup(inTurn(refused(429, { 'retry-after': '60' }), good));
    await client.page({ ...documents(), lane });
    // A backfill lets live requests go first.
    expect(clock.slept).toEqual([lane === 'live' ? 60_000 : 60_125]);
  });

  test('for longer than the budget, the call fails at once and names that time', async () => {
    const { server, client, clock } = await setup(() => refused(429, { 'retry-after': '600' }));
    expect(await rejection(client.page(documents()))).toMatchObject({
      code: 'SERVICE_BUSY',
      status: 429,
      retryAfterMs: 600_000,
    });
    expect(clock.slept).toEqual([]);
    // Other requests are not sent meanwhile, either.
    clock.advance(200_000);
    const other = await rejection(client.page({ ...documents(2), lane: 'live' }));
    expect(other).toMatchObject({ code: 'SERVICE_BUSY', status: undefined, retryAfterMs: 400_000 });
    expect(server.asked).toHaveLength(1);
    clock.advance(400_000);
    await rejection(client.page(documents(3)));
    expect(server.asked).toHaveLength(2);
  });

  test('a 503 with Retry-After counts like a 429', async () => {
    const { client, clock, logged } = await setup(inTurn(refused(503, { 'retry-after': '9' }), good));
    await client.page({ ...documents(), lane: 'live' });
    expect(clock.slept).toEqual([9000]);
    expect(logged.some(({ level }) => level === 'warn')).toBe(true);
    expect(JSON.stringify(logged)).not.toContain(apiKey);
  });
});

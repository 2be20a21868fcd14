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
  const date = 'Wed, 01 Jan 2025 00:00:00 GMT';
  const short = [750, 1500, 3000];
  test.each<
    [what: string, status: number, retryAfter: string | undefined, slept: number[], lane?: 'backfill']
  >([
    ['in seconds', 429, '7', [7000]],
    ['by a date', 429, 'Wed, 01 Jan 2025 00:00:07 GMT', [7000]],
    ['with a 503', 503, '9', [9000]],
    ['for exactly the budget', 429, '60', [60_000]],
    // A backfill lets live requests go first.
    ['for exactly the budget of a backfill', 429, '60', [60_125], 'backfill'],
    // Without a time, or with a time that is shorter, the wait is at least half of the backoff ceiling.
    ['without a time', 429, undefined, short],
    ['for no time', 503, '0', short],
    ['for a short time', 503, '0.1', short],
    ['until a time that is over', 503, 'Wed, 21 Oct 2015 07:28:00 GMT', short],
  ])('%s, the request waits', async (_what, status, retryAfter, slept, lane) => {
    const headers = { date, ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }) };
    const failures = slept.map(() => refused(status, headers));
    const { client, clock, ended, logged } = await setup(inTurn(...failures, good));
    await client.page({ ...documents(), lane: lane ?? 'live' });
    expect(clock.slept).toEqual(slept);
    expect(ended.at(-1)).toMatchObject({ result: 'ok' });
    expect(JSON.stringify(logged)).not.toContain(apiKey);
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
});

import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { joinLimit, shareOf, type WarehouseLimit } from '../../app/shared-limit.ts';
import { requestPolicy } from '../../contract/retry-policy.ts';
import { connectWarehouse } from '../../db/connect.ts';
import type { SharedLimit } from '../../service/throttle.ts';
import { createDoor } from '../service/door.ts';
import type { Script } from '../service/scripted-server.ts';
import { documents, rejection, type Setup, setup } from '../service/setup.ts';
import { outageOf } from '../support/outage.ts';
import { until } from '../support/poll.ts';
import { createWarehouse } from '../support/warehouse.ts';

const log = pino({ level: 'silent' });
const pages = Array.from({ length: 40 }, (_, index) => index + 1);

async function shared() {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  return warehouse;
}

interface Worker extends Setup {
  /** Returns the share that it was given last. */
  readonly share: () => number;
  readonly limit: WarehouseLimit;
}

/** Starts a client that joins as a worker process does, until the test is over. */
async function startClient(
  url: string,
  maxConcurrency: number,
  script: Script,
  everyMs?: number,
): Promise<Worker> {
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 1, onError: () => {} });
  const limit = await joinLimit({ warehouse, limit: maxConcurrency, log, ...(everyMs && { everyMs }) });
  onTestFinished(() => limit.leave());
  let share = 0;
  const sharedLimit: SharedLimit = {
    closed: (ms) => limit.closed(ms),
    follow: (client) =>
      limit.follow({
        ...client,
        share: (given) => {
          share = given;
          client.share(given);
        },
      }),
  };
  return { ...(await setup(script, { maxConcurrency, sharedLimit })), share: () => share, limit };
}

const shares = (workers: readonly Worker[]) => workers.map(({ share }) => share()).sort();
const waitForShares = (workers: readonly Worker[], expected: readonly number[]) =>
  until(`the shares are ${expected}`, () => String(shares(workers)) === String(expected));

const upTo = (max: number) => fc.integer({ min: 1, max });

test('shares add up to the limit, differ by one at most, and each of too many workers has its turn', () => {
  fc.assert(
    fc.property(upTo(40), upTo(60), upTo(1_000), (limit, workers, from) => {
      const sharesAt = (turn: number) =>
        Array.from({ length: workers }, (_, rank) => shareOf(limit, { rank, workers, turn }));
      const shares = sharesAt(from);
      expect(shares.reduce((sum, share) => sum + share, 0)).toBe(limit);
      expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
      const turns = Array.from({ length: Math.ceil(workers / limit) }, (_, turn) => sharesAt(from + turn));
      expect(shares.every((_, rank) => turns.some((turn) => (turn[rank] ?? 0) > 0))).toBe(true);
    }),
  );
});

/** A service that answers once the test lets it, and counts the waiting requests of all clients. */
function atOneDoor() {
  const gauge = { inFlight: 0, most: 0, perClient: [] as number[] };
  const waiting: (() => void)[] = [];
  return {
    gauge,
    script:
      (client: number): Script =>
      async () => {
        gauge.inFlight += 1;
        gauge.most = Math.max(gauge.most, gauge.inFlight);
        gauge.perClient[client] = (gauge.perClient[client] ?? 0) + 1;
        await new Promise<void>((answer) => waiting.push(answer));
        gauge.inFlight -= 1;
        return { json: [] };
      },
    answer: () => {
      for (const go of waiting.splice(0)) go();
    },
  };
}

test('more workers than the limit never have more requests in flight, and each comes to read', {
  timeout: 60_000,
}, async () => {
  const { url } = await shared();
  const { gauge, script, answer } = atOneDoor();
  const workers = await Promise.all([0, 1, 2, 3, 4].map((at) => startClient(url, 2, script(at), 200)));
  const all = Promise.all(
    workers.flatMap(({ client }) => pages.slice(0, 3).map((page) => client.page(documents(page)))),
  );
  // A request that takes longer than a turn keeps its share of the limit until it is answered.
  await until('two requests are in flight', () => gauge.inFlight === 2);
  await until('the turn of those that ask is over', () => shares(workers).every((share) => share === 0));
  expect(gauge.inFlight).toBe(2);
  const answering = setInterval(answer, 20);
  await all.finally(() => clearInterval(answering));
  expect(gauge.most).toBe(2);
  expect(gauge.perClient).toEqual([3, 3, 3, 3, 3]);
});

test("a share is free only when the other worker's requests in flight are answered", async () => {
  const { url } = await shared();
  const { gauge, script, answer } = atOneDoor();
  const first = await startClient(url, 4, script(0), 200);
  const asked = Promise.all(pages.slice(0, 4).map((page) => first.client.page(documents(page))));
  await until('the first has four requests in flight', () => gauge.inFlight === 4);
  const second = await startClient(url, 4, script(1), 200);
  const more = Promise.all(pages.slice(0, 4).map((page) => second.client.page(documents(page))));
  await until('the first asks for two at once from now on', () => first.share() === 2);
  expect(second.share()).toBe(0);
  const answering = setInterval(answer, 20);
  await Promise.all([asked, more]).finally(() => clearInterval(answering));
  expect(gauge.most).toBe(4);
  await waitForShares([first, second], [2, 2]);
});

describe('two workers', () => {
  test('use the limit together: no more requests at once, and no fewer', async () => {
    const { url } = await shared();
    const door = createDoor();
    const script: Script = async () => {
      await door.pass();
      return { json: [] };
    };
    const workers = [await startClient(url, 7, script), await startClient(url, 7, script)];
    await waitForShares(workers, [3, 4]);
    const all = Promise.all(
      workers.flatMap(({ client }) => pages.map((page) => client.page(documents(page)))),
    );
    await until('seven requests are at the door', () => door.waiting === 7);
    expect(workers.map(({ server }) => server.inFlight).sort()).toEqual([3, 4]);
    door.open();
    await all;
    for (const { server, share } of workers) expect(server.inFlightMax).toBe(share());
  });

  test('share it again when one leaves, dies or joins', async () => {
    const { url, db } = await shared();
    const good: Script = () => ({ json: [] });
    const first = await startClient(url, 10, good);
    expect(first.share()).toBe(10);
    const second = await startClient(url, 10, good);
    await waitForShares([first, second], [5, 5]);
    await second.limit.leave();
    await waitForShares([first], [10]);
    // A killed worker leaves its last sign of life. It lies in the future once the clock was set back.
    for (const since of ['-11 seconds', '1 day']) {
      const died = randomUUID();
      await db.execute(sql`insert into metersync.service_workers (worker_id) values (${died}::uuid)`);
      await waitForShares([first], [5]);
      await db.execute(
        sql`update metersync.service_workers set seen_at = now() + ${since}::interval where worker_id = ${died}::uuid`,
      );
      await waitForShares([first], [10]);
    }
  });

  test('both wait when the service asks one of them to, and slow down once for it', async () => {
    const { url, db } = await shared();
    const busy: Script = ({ query }) =>
      query.get('page') === '1'
        ? { status: 429, body: '', headers: { 'retry-after': '1800' } }
        : { json: [] };
    const [first, second] = [await startClient(url, 8, busy), await startClient(url, 8, busy)];
    await waitForShares([first, second], [4, 4]);
    await second.client.page(documents(2));
    expect(await rejection(first.client.page(documents(1)))).toMatchObject({ code: 'SERVICE_BUSY' });
    await until('the second holds its requests back', async () => {
      const refused = await second.client.page(documents(2)).catch((error: Error) => error.message);
      return typeof refused === 'string' && refused.startsWith('not sent: ');
    });
    const asked = second.server.asked.length;
    expect(await rejection(second.client.page(documents(3)))).toMatchObject({ code: 'SERVICE_BUSY' });
    expect(second.server.asked).toHaveLength(asked);
    const slowed = [first, second].map(({ logged }) => logged.filter(({ level }) => level === 'warn'));
    for (const warned of slowed) {
      expect(warned).toEqual([
        { level: 'warn', message: 'the service asks to slow down', fields: expect.anything() },
      ]);
    }
    // A worker that joins later finds the gate closed, though never for longer than a request may ask.
    await db.execute(sql`update metersync.service_gate set closed_until = now() + interval '1 day'`);
    const third = await startClient(url, 8, busy);
    const atMostAnHour = expect.toSatisfy((ms: number) => ms <= requestPolicy.retryAfterMaxMs);
    expect(await rejection(third.client.page(documents(2)))).toMatchObject({
      code: 'SERVICE_BUSY',
      retryAfterMs: atMostAnHour,
    });
    expect(third.server.asked).toHaveLength(0);
  });

  test('send no requests while the warehouse is away, and go on when it is back', async () => {
    const { url } = await shared();
    const outage = await outageOf(url);
    onTestFinished(() => outage.close());
    const first = await startClient(url, 10, () => ({ json: [] }), 200);
    expect(first.share()).toBe(10);
    await outage.begin();
    const second = await startClient(url, 10, () => ({ json: [] }), 200);
    expect(second.share()).toBe(0);
    await waitForShares([first], [0]);
    const read = Promise.all([first, second].map(({ client }) => client.page(documents(1))));
    await outage.end();
    await read;
    await waitForShares([first, second], [5, 5]);
  });
});

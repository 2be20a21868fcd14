import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { joinLimit, shareOf, type WarehouseLimit } from '../../app/shared-limit.ts';
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
  /** The share that it was told last. */
  readonly share: () => number;
  readonly limit: WarehouseLimit;
}

/** A client that joins as a worker process does, until the test is over, and a service of its own. */
async function startClient(url: string, maxConcurrency: number, script: Script): Promise<Worker> {
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 1, onError: () => {} });
  const limit = await joinLimit({ warehouse, limit: maxConcurrency, log });
  onTestFinished(() => limit.leave());
  let share = 0;
  const sharedLimit: SharedLimit = {
    closed: (ms) => limit.closed(ms),
    follow: (told) =>
      limit.follow({
        closeFor: (ms) => told.closeFor(ms),
        share: (given) => {
          share = given;
          told.share(given);
        },
      }),
  };
  return { ...(await setup(script, { maxConcurrency, sharedLimit })), share: () => share, limit };
}

const shares = (workers: readonly Worker[]) => workers.map(({ share }) => share()).sort();
const waitForShares = (workers: readonly Worker[], expected: readonly number[]) =>
  until(`the shares are ${expected}`, () => String(shares(workers)) === String(expected));

test('shares add up to the limit, differ by one at most, and are at least one', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 60 }), (limit, workers) => {
      const shares = Array.from({ length: workers }, (_, rank) => shareOf(limit, { rank, workers }));
      expect(shares.reduce((sum, share) => sum + share, 0)).toBe(Math.max(limit, workers));
      expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
      expect(Math.min(...shares)).toBeGreaterThanOrEqual(1);
    }),
  );
});

describe('two workers', () => {
  test('have the limit together: no more requests at once, and no fewer', async () => {
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

  test('share it anew when one leaves, dies or comes', async () => {
    const { url, db } = await shared();
    const good: Script = () => ({ json: [] });
    const first = await startClient(url, 10, good);
    expect(first.share()).toBe(10);
    const second = await startClient(url, 10, good);
    await waitForShares([first, second], [5, 5]);
    await second.limit.leave();
    await waitForShares([first], [10]);
    // Of a worker that was killed, its last sign of life is left.
    const died = randomUUID();
    await db.execute(sql`insert into metersync.service_workers (worker_id) values (${died}::uuid)`);
    await waitForShares([first], [5]);
    await db.execute(
      sql`update metersync.service_workers set seen_at = now() - interval '11 seconds' where worker_id = ${died}::uuid`,
    );
    await waitForShares([first], [10]);
  });

  test('wait together when the service asks one of them to, and slow down once for it', async () => {
    const { url } = await shared();
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
    // A worker that comes later finds the gate closed.
    const third = await startClient(url, 8, busy);
    expect(await rejection(third.client.page(documents(2)))).toMatchObject({ code: 'SERVICE_BUSY' });
    expect(third.server.asked).toHaveLength(0);
  });

  test('go on with their last share while the warehouse is away, and follow it again after', async () => {
    const { url } = await shared();
    const workers = [
      await startClient(url, 10, () => ({ json: [] })),
      await startClient(url, 10, () => ({ json: [] })),
    ] as const;
    await waitForShares(workers, [5, 5]);
    const outage = await outageOf(url);
    onTestFinished(() => outage.close());
    await outage.begin();
    for (const { client } of workers) {
      await Promise.all(pages.map((page) => client.page(documents(page))));
    }
    expect(shares(workers)).toEqual([5, 5]);
    await outage.end();
    await workers[1].limit.leave();
    await waitForShares([workers[0]], [10]);
  });

  test('need no warehouse to begin: without one, each has the whole limit', async () => {
    const { url } = await shared();
    const outage = await outageOf(url);
    onTestFinished(() => outage.close());
    await outage.begin();
    const worker = await startClient(url, 6, () => ({ json: [] }));
    expect(worker.share()).toBe(6);
    await Promise.all(pages.map((page) => worker.client.page(documents(page))));
    await outage.end();
  });
});

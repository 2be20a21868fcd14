import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRandom } from '../../bench/world.ts';
import { cases, long } from '../support/cases.ts';
import { withoutThreads } from '../support/command-process.ts';
import { until } from '../support/poll.ts';
import { blowsFor, type PartName, partNames } from './plan.ts';
import { deliverPoison } from './poison.ts';
import { type CuttingProxy, startProxy } from './proxy.ts';
import { type Rig, startRig } from './rig.ts';
import { verdict } from './verdict.ts';

/** One seed and one plan of what `npm run test:faults` runs longer and with several seeds. */
const seed = 1;
const timeout = 600_000;
/** Parts that are killed alone, before all parts are killed. Only `npm run test:long` kills each alone. */
const killedAlone: readonly PartName[] = long ? partNames : ['receiver'];

let rig: Rig;
let proxies: Record<'deliveries' | 'starts', CuttingProxy>;
beforeAll(async () => {
  const made: Partial<typeof proxies> = {};
  rig = await startRig({
    size: { companies: 2, documents: 120, intervalDays: 1 },
    // This test judges no alarms, and each look costs a tenth of a second of processor time.
    lookEverySeconds: 5,
    env: withoutThreads,
    between: {
      serviceAndReceiver: async (receiver) => {
        made.deliveries = await startProxy(receiver);
        return made.deliveries.address;
      },
      receiverAndTemporal: async (temporal) => {
        made.starts = await startProxy(temporal);
        return made.starts.address;
      },
    },
  });
  proxies = made as typeof proxies;
  expect(await rig.backfill()).toBe('complete');
}, timeout);
afterAll(async () => {
  await rig?.stop();
  await Promise.all(Object.values(proxies ?? {}).map((proxy) => proxy.close()));
}, timeout);

const delivered = async () => (await rig.service.status()).deliveries.delivered;

/** Makes a batch of events, and waits until some of them are acknowledged. */
async function beginBatch(batch: number): Promise<void> {
  const before = await delivered();
  await rig.service.random(cases(50, 120), seed + batch);
  await until('some are acknowledged', async () => (await delivered()) > before + 20, { timeoutMs: 120_000 });
}

/** Kills parts in the middle of a batch of events, and makes more events while they are down. */
async function blow(parts: readonly PartName[], batch: number): Promise<void> {
  const [planned] = blowsFor(seed, `short ${batch}`, { times: 1, parts, afterMs: [0, 0], downMs: [0, 0] });
  const order = (planned?.at ?? []).map(({ part }) => rig.parts[part]);
  await beginBatch(batch);
  await Promise.all(order.map((part) => part.kill()));
  await rig.service.random(cases(20, 60), seed + batch + 100);
  for (const part of order) await Promise.all([part.start(), rig.service.random(1, seed + batch + 200)]);
}

test('no event is lost or applied twice, and tables are equal, after kill -9 of one part and then of all parts during events', {
  timeout,
}, async () => {
  for (const [batch, part] of killedAlone.entries()) await blow([part], batch);
  await beginBatch(50);
  // The receiver and the worker wait for their servers, so the servers are started first.
  await Promise.all(partNames.map((part) => rig.parts[part].kill()));
  await Promise.all([...partNames].reverse().map((part) => rig.parts[part].start()));
  const figures = await verdict(rig);
  expect(figures.kills).toBe(killedAlone.length + partNames.length);
  expect(figures.acknowledged).toBe(figures.events);
});

test('no event is lost or applied twice if answers to accepted events or starts are lost and some events are poison', {
  timeout,
}, async () => {
  const random = createRandom(seed);
  for (const proxy of Object.values(proxies)) proxy.cutWhen(() => random.next() < 0.2);
  await rig.service.random(cases(150, 300), seed + 300);
  await until('answers were lost', () => proxies.deliveries.cuts > 3 && proxies.starts.cuts > 0, {
    timeoutMs: 120_000,
  });
  for (const proxy of Object.values(proxies)) proxy.cutWhen(() => false);
  const alsoAcknowledged: string[] = [];
  await rig.service.random(cases(40, 100), seed + 400);
  while (alsoAcknowledged.length < 10) alsoAcknowledged.push(await deliverPoison(rig, random));
  const figures = await verdict(rig, { alsoAcknowledged });
  expect(figures.dead).toBe(alsoAcknowledged.length);
});

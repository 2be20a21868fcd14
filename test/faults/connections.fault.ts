import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { fault, type Striking, say } from './fault.ts';
import { drawn } from './plan.ts';
import { type Proxies, withProxies } from './proxy.ts';
import type { Way } from './rig.ts';

const loadSeconds = 20;

/** Discards answers on a way with the given probability, and cuts their connections. */
const cutting =
  (way: Way, probability: number) =>
  async ({ made, random, load }: Striking<Proxies>): Promise<string> => {
    made[way].cutWhen(() => random.next() < probability);
    await load.end(loadSeconds);
    made[way].cutWhen(() => false);
    expect(made[way].cuts).toBeGreaterThan(10);
    return `${made[way].cuts} connections cut`;
  };

fault<Proxies>({
  name: 'C7',
  title: 'the answer to a delivery is lost after the event was taken',
  around: withProxies('serviceAndReceiver'),
  backfill: 'before',
  strike: cutting('serviceAndReceiver', 0.2),
  // The service did not see the answers, so it delivered accepted events again.
  check: ({ answers }) => expect(answers.none).toBeGreaterThan(10),
});

fault<Proxies>({
  name: 'C8',
  title: "Temporal's answer to a start is lost",
  around: withProxies('receiverAndTemporal'),
  backfill: 'before',
  strike: cutting('receiverAndTemporal', 0.1),
});

const ways: ReadonlyMap<Way, string> = new Map([
  ['serviceAndReceiver', 'the service and the receiver'],
  ['receiverAndTemporal', 'the receiver and Temporal'],
  ['workerAndTemporal', 'the worker and Temporal'],
  ['workerAndService', 'the worker and the service'],
  ['workerAndPostgres', 'the worker and Postgres'],
]);
const deafMs = 20_000;
const betweenMs = 3_000;

fault<Proxies>({
  name: 'C22',
  title: 'two parts hear nothing of each other for 20 s, over connections that stay open',
  alarms: { may: ['RunStalled', 'RunUnwell'] },
  rig: { size: { companies: 3, documents: 300, intervalDays: 2 } },
  around: withProxies(...ways.keys()),
  // The backfill has to run while the parts hear nothing.
  prepare: ({ service }) => service.fault({ kind: 'latency', ms: [400, 800] }),
  backfill: 'unjudged',
  strike: async ({ rig, made, seed, random }) => {
    for (const [way, parts] of drawn(random, ways)) {
      await delay(betweenMs);
      say(`C22, seed ${seed}: ${parts}`);
      rig.harm();
      made[way].deafen(true);
      await delay(deafMs);
      made[way].deafen(false);
    }
    await rig.service.clearFaults();
  },
});

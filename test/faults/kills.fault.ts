import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { AlarmName } from '../../health/findings.ts';
import { freePort } from '../support/port.ts';
import { type Fault, fault, say, times } from './fault.ts';
import type { Part } from './part.ts';
import { blowsFor, describePlan, type PartName, partNames } from './plan.ts';
import { type Balancer, type CuttingProxy, startBalancer, startProxy } from './proxy.ts';
import type { Rig } from './rig.ts';

/**
 * The work of a killed worker is taken over after 30 s without a heartbeat, which are half an hour for the
 * alarm rules. A listing that moves in each pass makes the run suspect.
 */
const workLate: readonly AlarmName[] = ['RunStalled', 'RunUnwell'];

/** Kills parts under load and during a backfill. */
function kills(
  name: string,
  title: string,
  blowsByDefault: number,
  parts: readonly PartName[],
  { downMs = [0, 1_000], ...more }: Partial<Fault<undefined>> & { downMs?: readonly [number, number] } = {},
): void {
  const blows = times(blowsByDefault);
  fault({
    name,
    title,
    eachSeed: true,
    alarms: { may: workLate },
    backfill: 'during',
    loadSeconds: 20,
    strike: async ({ rig, seed }) => {
      const plan = blowsFor(seed, name, { times: blows, parts, afterMs: [200, 1_500], downMs });
      say(`${name}, seed ${seed}: ${describePlan(plan)}`);
      for (const { afterMs, at } of plan) {
        await delay(afterMs);
        rig.harm();
        await Promise.all(at.map(({ part }) => rig.parts[part].kill()));
        await Promise.all(
          at.map(async ({ part, downMs: down }) => {
            await delay(down);
            await rig.parts[part].start();
          }),
        );
      }
    },
    ...more,
    check: (figures, rig, made, seed) => {
      expect(figures.kills).toBe(blows * parts.length);
      return more.check?.(figures, rig, made, seed);
    },
  });
}

kills('C1', 'the receiver is killed', 4, ['receiver'], {
  alarms: { may: ['RunUnwell'] },
  check: ({ answers }) => expect(answers.none).toBeGreaterThan(0),
});
kills('C2', 'the worker is killed', 4, ['worker']);
kills('C3', 'Temporal is killed', 2, ['temporal'], {
  // It is down for longer than the receiver waits before it answers 503.
  downMs: [9_000, 12_000],
  check: ({ answers }) => expect(answers['503']).toBeGreaterThan(0),
});
kills('C4', 'Postgres is killed', 2, ['postgres']);
kills('C5', 'all four are killed at once and come back in any order', 2, partNames);

/** How long a part stands still. The worker's time is longer than Temporal waits for its heartbeats. */
const pausesMs: Readonly<Record<PartName, number>> = {
  receiver: 20_000,
  temporal: 20_000,
  postgres: 20_000,
  worker: 36_000,
};

fault({
  name: 'C6',
  title: 'each part stands still for 20 s or longer, the worker for longer than its heartbeats allow',
  alarms: { may: ['RunStalled', 'RunUnwell', 'Decide'] },
  rig: { size: { companies: 3, documents: 300, intervalDays: 2 } },
  // The backfill has to be still running when the worker is paused.
  prepare: ({ service }) => service.fault({ kind: 'latency', ms: [400, 800] }),
  backfill: 'unjudged',
  strike: async ({ rig, seed }) => {
    const [order] = blowsFor(seed, 'C6', { times: 1, parts: partNames, afterMs: [500, 500], downMs: [0, 0] });
    const names = (order?.at ?? []).map(({ part }) => part);
    say(`C6, seed ${seed}: ${names.join(', ')}`);
    for (const name of names) {
      // A second worker gets the work that the first still holds.
      if (name === 'worker') await rig.another('worker').start();
      rig.harm();
      rig.parts[name].pause();
      await delay(pausesMs[name]);
      rig.parts[name].resume();
    }
    await rig.service.clearFaults();
  },
  check: (figures) => expect(figures.kills).toBe(0),
});

const fleetSizes = { receiver: 3, worker: 4 } as const;
/** The most requests to the service that each worker may send at once. */
const requestsMax = 3;

interface Fleet {
  readonly balancer: Balancer;
  readonly proxies: CuttingProxy[];
  /** Puts a proxy between a worker and the service. */
  throughProxy(service: string): Promise<string>;
  /** The most requests that one worker has sent at once. */
  most(): number;
  parts: Readonly<Record<keyof typeof fleetSizes, Part[]>>;
}

async function startFleet(): Promise<Fleet> {
  const proxies: CuttingProxy[] = [];
  let most = 0;
  return {
    balancer: await startBalancer(),
    proxies,
    throughProxy: async (service) => {
      let now = 0;
      const proxy = await startProxy(service, (change) => {
        now += change;
        most = Math.max(most, now);
      });
      proxies.push(proxy);
      return proxy.address;
    },
    most: () => most,
    parts: { receiver: [], worker: [] },
  };
}

/** Starts the other receivers and workers. */
async function fill(fleet: Fleet, rig: Rig): Promise<void> {
  const { receiver, worker } = fleet.parts;
  receiver.push(rig.parts.receiver);
  worker.push(rig.parts.worker);
  while (receiver.length < fleetSizes.receiver) {
    const port = String(await freePort());
    fleet.balancer.add(`127.0.0.1:${port}`);
    receiver.push(rig.another('receiver', { RECEIVER_PORT: port }));
  }
  while (worker.length < fleetSizes.worker) {
    const SERVICE_URL = await fleet.throughProxy(rig.service.apiUrl);
    worker.push(rig.another('worker', { SERVICE_URL }));
  }
  await Promise.all([...receiver, ...worker].map((part) => part.start()));
}

fault<Fleet>({
  name: 'C20',
  title: `${fleetSizes.receiver} receivers and ${fleetSizes.worker} workers; one of each is killed, three times`,
  eachSeed: true,
  alarms: { may: ['ChangesMissed', ...workLate] },
  rig: {
    size: { companies: 12, documents: 60, intervalDays: 2 },
    env: { SERVICE_MAX_CONCURRENCY: String(requestsMax) },
  },
  around: async (work) => {
    const fleet = await startFleet();
    const serviceAndReceiver = async (receiver: string) => fleet.balancer.add(receiver);
    try {
      return await work({ between: { serviceAndReceiver, workerAndService: fleet.throughProxy } }, fleet);
    } finally {
      await Promise.all([fleet.balancer, ...fleet.proxies].map((proxy) => proxy.close()));
    }
  },
  prepare: (rig, fleet) => fill(fleet, rig),
  backfill: 'during',
  loadSeconds: 30,
  strike: async ({ rig, made, random }) => {
    for (let round = 0; round < times(3); round++) {
      await delay(random.int(500, 2_000));
      rig.harm();
      await Promise.all(
        Object.values(made.parts).map(async (parts) => {
          await delay(random.int(0, 1_000));
          const part = parts[random.int(0, parts.length - 1)];
          await part?.kill();
          await delay(random.int(0, 2_000));
          await part?.start();
        }),
      );
    }
  },
  check: ({ kills }, _rig, { balancer, proxies, most }, seed) => {
    expect(kills).toBe(2 * times(3));
    const taken = [...balancer.taken.values()];
    const reads = proxies.map(({ gets }) => gets);
    say(`C20, seed ${seed}: connections ${taken}; reads ${reads}, at most ${most()} at once of one worker`);
    // No receiver and no worker is idle, and each worker keeps its limit.
    expect(Math.min(...taken)).toBeGreaterThan(0);
    expect(Math.min(...reads)).toBeGreaterThan(0);
    expect(most()).toBeLessThanOrEqual(requestsMax);
  },
});

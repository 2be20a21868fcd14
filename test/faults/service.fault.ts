import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { createRandom } from '../../bench/world.ts';
import { workflowIds } from '../../contract/names.ts';
import type { AlarmName } from '../../health/findings.ts';
import { fault, say, seeds } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { drawn, seedOf } from './plan.ts';
import { type CuttingProxy, startProxy } from './proxy.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

const once = seeds().slice(0, 1);
/** The value of SERVICE_MAX_CONCURRENCY in these runs. */
const atOnce = 6;

/** Misbehaviours of the API. Each lasts for some seconds. */
const ways = [
  { kind: 'status', status: 429, probability: 0.5 },
  { kind: 'status', status: 429, retryAfter: 2, probability: 0.5 },
  { kind: 'status', status: 503, probability: 0.5 },
  { kind: 'status', status: 500, probability: 0.5 },
  { kind: 'latency', ms: [30_000, 30_000], times: 4 },
  { kind: 'cut', probability: 0.3 },
  { kind: 'garbage', probability: 0.3 },
  { kind: 'reset', probability: 0.3 },
] as const;
const wayMs = 4_000;

const serviceFails: readonly AlarmName[] = ['Parked', 'RunStalled', 'RunUnwell', 'ServiceDown'];

fault(
  'C10',
  'the API refuses, fails, is slow, breaks off and answers nonsense',
  once,
  { may: serviceFails },
  async (seed) => {
    const random = createRandom(seedOf(seed, 'C10'));
    let proxy: CuttingProxy | undefined;
    const rig = await startRig({
      size: { companies: 3, documents: 150, intervalDays: 2 },
      env: { SERVICE_MAX_CONCURRENCY: String(atOnce) },
      between: {
        workerAndService: async (service) => {
          proxy = await startProxy(service);
          return proxy.address;
        },
      },
    });
    try {
      const load = startLoad(rig.service, seedOf(seed, 'C10'), eventsPerSecond);
      const runId = await startBackfill(rig.client);
      for (const way of drawn(random, ways)) {
        say(`C10, seed ${seed}: ${JSON.stringify(way)}`);
        rig.harm();
        await rig.service.fault({ ...way, seed: random.int(1, 1_000_000) });
        await delay(wayMs);
        await rig.service.clearFaults();
      }
      const { perSecond } = await load.end();
      await rig.client.workflow.getHandle(workflowIds.backfill(runId)).result();
      // The run noted the listings that it gave up, and the next run reads them.
      expect(['complete', 'suspect']).toContain(await rig.backfill());
      const figures = await verdict(rig);
      // The proxy may see the end of a broken connection shortly after the next connection was opened.
      expect(proxy?.openMax).toBeLessThanOrEqual(2 * atOnce);
      const requests = `${proxy?.gets ?? 0} requests`;
      return { injected: `${ways.length} ways in turn; ${requests}`, perSecond, figures };
    } finally {
      await rig.stop();
      await proxy?.close();
    }
  },
);

fault(
  'C11',
  'listings of 10,000 records move while a backfill reads them',
  once,
  { may: ['RunUnwell'] },
  async (seed) => {
    const rig = await startRig({ size: { companies: 2, documents: 5_000, intervalDays: 1 } });
    try {
      await rig.service.fault({ kind: 'latency', path: '/document/company', ms: [50, 100] });
      // Twenty changes a second are enough to move each page of a listing during a walk.
      const load = startLoad(rig.service, seedOf(seed, 'C11'), 20, [
        'createDocument',
        'deleteDocument',
        'reprocessDocument',
      ]);
      const state = await rig.backfill();
      const { events, perSecond } = await load.end(20);
      expect(['complete', 'suspect']).toContain(state);
      await rig.service.clearFaults();
      const figures = await verdict(rig);
      return { injected: `${events} changes; the run ended ${state}`, perSecond, figures };
    } finally {
      await rig.stop();
    }
  },
);

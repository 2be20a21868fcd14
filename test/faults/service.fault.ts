import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { fault, say } from './fault.ts';
import { drawn } from './plan.ts';
import { type Proxies, withProxies } from './proxy.ts';

/** The value of SERVICE_MAX_CONCURRENCY in C10. */
const atOnce = 6;

/** Misbehaviours of the API. Each lasts for some seconds. */
const misbehaviours = [
  { kind: 'status', status: 429, probability: 0.5 },
  { kind: 'status', status: 429, retryAfter: 2, probability: 0.5 },
  { kind: 'status', status: 503, probability: 0.5 },
  { kind: 'status', status: 500, probability: 0.5 },
  { kind: 'latency', ms: [30_000, 30_000], times: 4 },
  { kind: 'cut', probability: 0.3 },
  { kind: 'garbage', probability: 0.3 },
  { kind: 'reset', probability: 0.3 },
] as const;
const eachMs = 4_000;

fault<Proxies>({
  name: 'C10',
  title: 'the API refuses, fails, is slow, breaks off and answers nonsense',
  alarms: { may: ['Parked', 'RunStalled', 'RunUnwell', 'ServiceDown'] },
  rig: {
    size: { companies: 3, documents: 150, intervalDays: 2 },
    env: { SERVICE_MAX_CONCURRENCY: String(atOnce) },
  },
  around: withProxies('workerAndService'),
  backfill: 'unjudged',
  strike: async ({ rig, made, seed, random, load, run }) => {
    for (const misbehaviour of drawn(random, misbehaviours)) {
      say(`C10, seed ${seed}: ${JSON.stringify(misbehaviour)}`);
      rig.harm();
      await rig.service.fault({ ...misbehaviour, seed: random.int(1, 1_000_000) });
      await delay(eachMs);
      await rig.service.clearFaults();
    }
    await load.end();
    await run?.result();
    // The run noted the listings that it gave up, and the next run reads them.
    expect(['complete', 'suspect']).toContain(await rig.backfill());
    return `${misbehaviours.length} ways in turn; ${made.workerAndService.gets} requests`;
  },
  // The proxy may see the end of a broken connection shortly after the next connection was opened.
  check: (_figures, _rig, { workerAndService }) =>
    expect(workerAndService.openMax).toBeLessThanOrEqual(2 * atOnce),
});

fault({
  name: 'C11',
  title: 'listings of 10,000 records move while a backfill reads them',
  alarms: { may: ['RunUnwell'] },
  rig: { size: { companies: 2, documents: 5_000, intervalDays: 1 } },
  prepare: ({ service }) => service.fault({ kind: 'latency', path: '/document/company', ms: [50, 100] }),
  backfill: 'during',
  // Twenty changes a second are enough to move each page of a listing during a walk.
  load: { perSecond: 20, types: ['createDocument', 'deleteDocument', 'reprocessDocument'] },
  strike: async ({ rig, load, run }) => {
    const state = await run?.result();
    const { events } = await load.end(20);
    await rig.service.clearFaults();
    return `${events} changes; the run ended ${state}`;
  },
});

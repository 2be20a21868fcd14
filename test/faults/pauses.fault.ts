import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { fault, say, seeds } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { blowsFor, type PartName, partNames, seedOf } from './plan.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

const pauseMs = 20_000;
/** Longer than Temporal's heartbeat time-out: a second worker gets work that the first still holds. */
const workerPauseMs = 36_000;
const pausesMs: Readonly<Record<PartName, number>> = {
  receiver: pauseMs,
  temporal: pauseMs,
  postgres: pauseMs,
  worker: workerPauseMs,
};

fault(
  'C6',
  'each part stands still for 20 s or longer, the worker for longer than its heartbeats allow',
  seeds().slice(0, 1),
  { may: ['RunStalled', 'RunUnwell', 'Decide'] },
  async (seed) => {
    const [order] = blowsFor(seed, 'C6', { times: 1, parts: partNames, afterMs: [500, 500], downMs: [0, 0] });
    const parts = (order?.at ?? []).map(({ part }) => part);
    say(`C6, seed ${seed}: ${parts.join(', ')}`);
    const rig = await startRig({ size: { companies: 3, documents: 300, intervalDays: 2 } });
    try {
      // A first backfill has to be still running when the worker is paused.
      await rig.service.fault({ kind: 'latency', ms: [400, 800] });
      await startBackfill(rig.client);
      const load = startLoad(rig.service, seedOf(seed, 'C6'), eventsPerSecond);
      for (const name of parts) {
        const part = rig.parts[name];
        if (name === 'worker') await rig.another('worker').start();
        rig.harm();
        part.pause();
        await delay(pausesMs[name]);
        part.resume();
      }
      await rig.service.clearFaults();
      const { perSecond } = await load.end();
      const figures = await verdict(rig);
      expect(figures.kills).toBe(0);
      return { injected: '', perSecond, figures };
    } finally {
      await rig.stop();
    }
  },
);

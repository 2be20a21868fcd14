import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { fault, say, seeds } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { blowsFor, partNames, seedOf } from './plan.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

const pauseMs = 20_000;
/** Past the heartbeats that Temporal waits for: the second worker is given what the first still believes to do. */
const workerPauseMs = 36_000;

fault(
  'C6',
  'each part stands still for 20 s, the worker for longer than its heartbeats allow',
  seeds().slice(0, 1),
  async (seed) => {
    const [order] = blowsFor(seed, 'C6', { times: 1, parts: partNames, afterMs: [500, 500], downMs: [0, 0] });
    const parts = (order?.at ?? []).map(({ part }) => part);
    say(`C6, seed ${seed}: ${parts.join(', ')}`);
    const rig = await startRig({ size: { companies: 3, documents: 300, intervalDays: 2 } });
    try {
      // A first read that is still under way when the worker stops.
      await rig.service.fault({ kind: 'latency', ms: [400, 800] });
      await startBackfill(rig.client);
      const load = startLoad(rig.service, seedOf(seed, 'C6'), eventsPerSecond);
      for (const name of parts) {
        const part = rig.parts[name];
        if (name === 'worker') await rig.secondWorker.start();
        part.pause();
        await delay(name === 'worker' ? workerPauseMs : pauseMs);
        part.resume();
      }
      await rig.service.clearFaults();
      const { perSecond } = await load.end();
      const figures = await verdict(rig);
      expect(figures.kills).toBe(0);
      return { injected: '4 × SIGSTOP', perSecond, figures };
    } finally {
      await rig.stop();
    }
  },
);

import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { workflowNames } from '../../contract/names.ts';
import { until } from '../support/poll.ts';
import { fault, say, seeds } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { blowsFor, type PartName, partNames, seedOf } from './plan.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

const pauseMs = 20_000;
/** How many looks have to find Postgres silent, each after 10 s. The rules' five minutes are five seconds. */
const looksWithoutPostgres = 3;
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
  {
    must: ['WarehouseDown'],
    may: ['RunStalled', 'RunUnwell', 'Decide'],
  },
  async (seed) => {
    const [order] = blowsFor(seed, 'C6', { times: 1, parts: partNames, afterMs: [500, 500], downMs: [0, 0] });
    const parts = (order?.at ?? []).map(({ part }) => part);
    say(`C6, seed ${seed}: ${parts.join(', ')}`);
    // Postgres may stand still for longer than the 72 seconds that represent three days without an event. A
    // look that is interrupted ends after 40 s, and three more looks have to find Postgres silent.
    const env = { SILENCE_HOURS: '400' };
    const rig = await startRig({ size: { companies: 3, documents: 300, intervalDays: 2 }, env });
    const looksSince = async (time: string): Promise<number> =>
      (
        await rig.client.workflow.count(
          `WorkflowType = '${workflowNames.watch}' and ExecutionStatus = 'Completed' and StartTime > '${time}'`,
        )
      ).count;
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
        const pausedAt = new Date().toISOString();
        await delay(pausesMs[name]);
        if (name === 'postgres')
          await until(
            'looks found it silent',
            async () => (await looksSince(pausedAt)) >= looksWithoutPostgres,
            {
              timeoutMs: 300_000,
              everyMs: 500,
            },
          );
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

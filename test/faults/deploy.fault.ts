import type { Client } from '@temporalio/client';
import { pino } from 'pino';
import { expect } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { replayHistories } from '../../app/temporal/replay-histories.ts';
import { workflowIds } from '../../contract/names.ts';
import { until } from '../support/poll.ts';
import { changedCheckout } from './changed-checkout.ts';
import { fault, seeds } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { seedOf } from './plan.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

const inFlight = `ExecutionStatus = 'Running' and WorkflowType = 'backfill'`;

fault(
  'C18',
  'a worker with changed workflows takes over in the middle of a backfill',
  seeds().slice(0, 1),
  { may: ['RunUnwell'] },
  async (seed) => {
    const [next, mistaken] = await Promise.all([changedCheckout('patched'), changedCheckout('unpatched')]);
    const rig = await startRig({ size: { companies: 3, documents: 400, intervalDays: 2 } });
    const { service, client, parts, launch } = rig;
    try {
      await service.fault({ kind: 'latency', ms: [300, 600] });
      const runId = await startBackfill(client);
      const load = startLoad(service, seedOf(seed, 'C18'), eventsPerSecond);
      await until('companies are being read', async () => (await client.workflow.count(inFlight)).count > 0);
      await parts.worker.stop('SIGTERM');
      launch.worker.checkout = next.path;
      await parts.worker.start();
      expect((await client.workflow.count(inFlight)).count).toBeGreaterThan(0);
      await service.clearFaults();
      const { perSecond } = await load.end(20);
      expect(['complete', 'suspect']).toContain(
        await client.workflow.getHandle(workflowIds.backfill(runId)).result(),
      );
      const figures = await verdict(rig);
      await parts.worker.stop('SIGTERM');
      expect(rig.said('worker').join('\n')).not.toMatch(/TMPRL1100|Nondeterminism/i);

      // All runs, old and new, replay on the new code. On the code that was changed by mistake they do not.
      expect(await replayed(client, next.path)).toEqual({
        failures: 0,
        histories: expect.toSatisfy((n: number) => n > 10),
      });
      expect((await replayed(client, mistaken.path)).failures).toBeGreaterThan(0);
      return { injected: '', perSecond, figures };
    } finally {
      await rig.stop();
      await Promise.all([next.remove(), mistaken.remove()]);
    }
  },
);

async function replayed(client: Client, checkout: string): Promise<{ failures: number; histories: number }> {
  const { bundleWorkflows } = (await import(
    `${checkout}/app/temporal/workflow-bundle.ts`
  )) as typeof import('../../app/temporal/workflow-bundle.ts');
  const workflowBundle = await bundleWorkflows(pino({ level: 'silent' }));
  const { failures, histories } = await replayHistories(client, { workflowBundle, which: 'any', most: 15 });
  return { failures: failures.length, histories };
}

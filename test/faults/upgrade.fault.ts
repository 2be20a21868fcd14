import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { workflowIds } from '../../contract/names.ts';
import { fault, seeds } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { olderCheckout } from './older-checkout.ts';
import { seedOf } from './plan.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

/** The revision of the older release: `--from`. */
const from = process.env.FAULTS_FROM;

if (from !== undefined) {
  fault(
    'C21',
    'an older release with data and runs under way is upgraded by one migrate',
    seeds().slice(0, 1),
    { may: ['ChangesMissed', 'RunUnwell'] },
    async (seed) => {
      const older = await olderCheckout(from);
      const size = { companies: 3, documents: 400, intervalDays: 2 };
      const rig = await startRig({ size, older: older.path });
      const { service, client, parts, launch } = rig;
      try {
        const load = startLoad(service, seedOf(seed, 'C21'), eventsPerSecond);
        const runs = [await startBackfill(client)];
        await delay(3_000);
        // Workers of an older release do not write to the newer schema: they are stopped first.
        await parts.worker.stop('SIGTERM');
        const migrated = await rig.run(['migrate']);
        expect(migrated.status, migrated.stderr).toBe(0);
        delete launch.worker.checkout;
        await parts.worker.start();
        runs.push(await startBackfill(client));
        const { perSecond } = await load.end(20);
        for (const runId of runs)
          expect(['complete', 'suspect']).toContain(
            await client.workflow.getHandle(workflowIds.backfillAll(runId)).result(),
          );
        const figures = await verdict(rig);
        expect(parts.worker.endedByItself).toEqual([]);
        expect(rig.said('worker').join('\n')).not.toMatch(/TMPRL1100|Nondeterminism/i);
        return { injected: `from ${from}`, perSecond, figures };
      } finally {
        await rig.stop();
        await older.remove();
      }
    },
  );
}

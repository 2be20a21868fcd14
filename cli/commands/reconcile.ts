import { startReconcile } from '../../app/backfill.ts';
import { withClient } from '../../app/temporal/temporal.ts';
import { recorded } from '../../operations/recorded.ts';
import { requireWorker } from '../../operations/require-worker.ts';
import { asOperation } from '../as-operation.ts';
import { print, say } from '../print.ts';
import { withWarehouse } from '../warehouse.ts';
import { follow } from './backfill.ts';

/** `metersync reconcile`: starts a reconcile now; `--follow` waits for its end. */
export async function reconcile(options: { follow?: boolean }): Promise<void> {
  await withWarehouse({ temporal: true, service: false }, async ({ db, context }) =>
    withClient(context.stack.temporal, async (client) => {
      const runId = await recorded(
        db,
        asOperation(context.settings, 'reconcile', {}),
        async () => {
          await requireWorker(client, 'backfill');
          return await startReconcile(client);
        },
        (started) => `reconcile ${started} started`,
      );
      print(`reconcile ${runId} started`);
      if (options.follow) await follow(client, db, runId);
      else say(`To follow it: metersync backfill --run ${runId}`);
    }),
  );
}

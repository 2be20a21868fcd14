import { connectClient } from '../../app/temporal.ts';
import type { DeliveryResult } from '../../db/read/watch.ts';
import { testNotifications } from '../../operations/notify-test.ts';
import { recorded } from '../../operations/recorded.ts';
import { requireWorker } from '../../operations/require-worker.ts';
import { asOperation } from '../as-operation.ts';
import { print, printJson } from '../print.ts';
import { withWarehouse } from '../warehouse.ts';

const noTarget = 'The workers have no target: set NOTIFY_URLS for them.';

/** `metersync notify test`: sends a test to each target as the workers send alarms; status 1 unless all took it. */
export async function notifyTest(options: { json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: true }, async ({ db, context }) => {
    const { client, close } = await connectClient(context.stack.temporal);
    try {
      const targets = await recorded(
        db,
        asOperation(context.settings, 'notify test', {}),
        async () => {
          await requireWorker(client, 'watch');
          return await testNotifications({ client, db });
        },
        (done) => done.map(describe).join('; ') || noTarget,
      );
      if (options.json) printJson({ targets });
      else if (targets.length === 0) print(noTarget);
      else print(...targets.map(describe));
      if (targets.length === 0 || targets.some(({ sentAt }) => sentAt === null)) process.exitCode = 1;
    } finally {
      await close();
    }
  });
}

function describe({ target, sentAt, attempts, error }: DeliveryResult): string {
  if (sentAt !== null) return `${target}: taken`;
  if (attempts === 0)
    return `${target}: waits: the target has not taken earlier messages (metersync alerts list)`;
  return `${target}: not taken: ${error}`;
}

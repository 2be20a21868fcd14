import { workerIsPolling } from '../../app/backfill.ts';
import { connectClient } from '../../app/temporal.ts';
import type { DeliveryResult } from '../../db/read/watch.ts';
import { testNotifications } from '../../operations/notify-test.ts';
import { CommandError } from '../errors.ts';
import { print, printJson } from '../print.ts';
import { withWarehouse } from '../warehouse.ts';

/** `metersync notify test`: sends a test to each target as the workers send alarms; status 1 unless all took it. */
export async function notifyTest(options: { json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: true }, async ({ db, context }) => {
    const { client, close } = await connectClient(context.stack.temporal);
    try {
      if (!(await workerIsPolling(client, 'events')))
        throw new CommandError('no worker runs, and they send: run metersync start, or metersync worker');
      const targets = await testNotifications({ client, db });
      if (options.json) printJson({ targets });
      else if (targets.length === 0) print('The workers have no target: set their NOTIFY_URLS.');
      else print(...targets.map(describe));
      if (targets.length === 0 || targets.some(({ sentAt }) => sentAt === null)) process.exitCode = 1;
    } finally {
      await close();
    }
  });
}

function describe({ target, sentAt, attempts, error }: DeliveryResult): string {
  if (sentAt !== null) return `${target}: taken`;
  if (attempts === 0) return `${target}: waits behind what the target has not taken (metersync alerts list)`;
  return `${target}: not taken: ${error}`;
}

import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { LookResult } from '../activities/watch.ts';
import { taskQueues, workflowIds, workflowNames } from '../contract/names.ts';
import { notifyPolicy } from '../contract/retry-policy.ts';
import type { Executor } from '../db/connect.ts';
import { type DeliveryResult, deliveriesOf } from '../db/read/watch.ts';

/**
 * Has the workers send a test to each target on the way of every alarm: the same workflow, outbox and
 * request. Returns what became of it at each target.
 * @throws Error when the workers cannot reach the warehouse
 */
export async function testNotifications({
  client,
  db,
}: {
  client: Client;
  db: Executor;
}): Promise<readonly DeliveryResult[]> {
  const look: LookResult = await client.workflow.execute(workflowNames.watch, {
    workflowId: workflowIds.notifyTest(randomUUID()),
    taskQueue: taskQueues.backfill,
    args: [{ test: true }],
  });
  if (look.messageId === null) throw new Error('the workers cannot reach the warehouse');
  // A look of the schedule may be sending to a target meanwhile.
  const until = performance.now() + notifyPolicy.sendMs;
  for (;;) {
    const deliveries = await deliveriesOf(db, look.messageId);
    if (deliveries.every(({ attempts }) => attempts > 0) || performance.now() > until) return deliveries;
    await wait(notifyPolicy.testLookEveryMs);
  }
}

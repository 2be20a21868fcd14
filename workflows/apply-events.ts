import { ParentClosePolicy, startChild, uuid4 } from '@temporalio/workflow';
import type { EventGroup } from '../contract/delivery.ts';
import { taskQueues, workflowIds } from '../contract/names.ts';
import { backfillAll } from './backfill-all.ts';
import { localFirst } from './local-first.ts';
import { local, patient } from './proxies.ts';

/** Writes a group of events to the warehouse, and wakes whoever reads again what they told of. */
export async function applyEvents(group: EventGroup): Promise<void> {
  const recorded = await localFirst(
    () => local.recordGroup(group),
    () => patient.recordGroup(group),
  );
  if (recorded.wake.length > 0) {
    const kinds = recorded.wake;
    await localFirst(
      () => local.wakeCatchUps({ kinds }),
      () => patient.wakeCatchUps({ kinds }),
    );
  }
  // Groups that an earlier version recorded: a catch-up starts this now, when the service has spoken of the company.
  const { newCompanies = [] } = recorded;
  if (newCompanies.length > 0) {
    const runId = uuid4();
    await startChild(backfillAll, {
      workflowId: workflowIds.backfillAll(runId),
      taskQueue: taskQueues.backfill,
      parentClosePolicy: ParentClosePolicy.ABANDON,
      args: [{ runId, companies: newCompanies }],
    });
  }
}

import { workflowInfo } from '@temporalio/workflow';
import type { EventGroup } from '../contract/event.ts';
import { localFirst, quickLocal, quickUnlimited } from './activity-options.ts';

/** Writes a group of events to the warehouse, and reads their records once. The sweep reads what is left. */
export async function applyEvents(group: EventGroup): Promise<void> {
  const waitedMs = Date.now() - workflowInfo().startTime.getTime();
  const recorded = await localFirst(
    () => quickLocal.recordGroup({ ...group, waitedMs }),
    () => quickUnlimited.recordGroup(group),
  );
  // If a worker of version 0.2 recorded the group, its history may have this step, which does nothing any more.
  const { wake: kinds = [] } = recorded as { wake?: readonly string[] };
  if (kinds.length > 0) {
    await localFirst(
      () => quickLocal.wakeCatchUps({ kinds }),
      () => quickUnlimited.wakeCatchUps({ kinds }),
    );
  }
}

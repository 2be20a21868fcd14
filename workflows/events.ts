import type { EventGroup } from '../contract/delivery.ts';
import { quickLocal, quickUnlimited } from './activity-options.ts';
import { localFirst } from './local-first.ts';

/** Writes a group of events to the warehouse, and wakes the catch-ups that read the records they named. */
export async function applyEvents(group: EventGroup): Promise<void> {
  const recorded = await localFirst(
    () => quickLocal.recordGroup(group),
    () => quickUnlimited.recordGroup(group),
  );
  if (recorded.wake.length > 0) {
    const kinds = recorded.wake;
    await localFirst(
      () => quickLocal.wakeCatchUps({ kinds }),
      () => quickUnlimited.wakeCatchUps({ kinds }),
    );
  }
}

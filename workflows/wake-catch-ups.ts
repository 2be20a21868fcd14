import { type CatchUpKind, catchUpKinds } from '../contract/names.ts';
import { quickUnlimited } from './activity-options.ts';

/** Started by a schedule once a minute, so that no lost wake-up leaves an event waiting, and no lost run seems to go on. */
export async function wakeCatchUps(): Promise<void> {
  const kinds: CatchUpKind[] = [];
  for (const kind of catchUpKinds) {
    const due = await quickUnlimited.dueOwners({ kind, limit: 1 });
    if (due.length > 0) kinds.push(kind);
  }
  if (kinds.length > 0) await quickUnlimited.wakeCatchUps({ kinds });
  await quickUnlimited.endLostRuns({});
}

import { type CatchUpKind, catchUpKinds } from '../contract/names.ts';
import { quickUnlimited } from './activity-options.ts';

/**
 * Wakes catch-ups that lost a wake-up, and ends runs that lost their workflow. A schedule starts it once a
 * minute.
 */
export async function wakeCatchUps(): Promise<void> {
  const kinds: CatchUpKind[] = [];
  for (const kind of catchUpKinds) {
    const due = await quickUnlimited.dueOwners({ kind, limit: 1 });
    if (due.length > 0) kinds.push(kind);
  }
  if (kinds.length > 0) await quickUnlimited.wakeCatchUps({ kinds });
  await quickUnlimited.endLostRuns({});
}

import { batches } from '../contract/limits.ts';
import type { Executor } from '../db/connection/connect.ts';
import { ignoreEvents } from '../db/events/ignore-events.ts';
import type { EventFilter } from '../db/read/event-filter.ts';
import type { Place } from '../db/read/event-place.ts';
import { listEvents } from '../db/read/events.ts';

/** Notes the dead events of a filter as ignored; returns how many they were. */
export async function ignoreDead(db: Executor, filter: EventFilter): Promise<number> {
  let ignored = 0;
  let after: Place | undefined;
  do {
    const page = await listEvents(db, { ...filter, outcome: 'dead' }, { limit: batches.rowsDropped, after });
    ignored += (
      await ignoreEvents(
        db,
        page.events.map(({ id }) => id),
      )
    ).length;
    after = page.next ?? undefined;
  } while (after !== undefined);
  return ignored;
}

import { batches } from '../contract/limits.ts';
import { formatTime } from '../contract/times.ts';
import { counted } from '../contract/words.ts';
import type { Executor } from '../db/connection/connect.ts';
import { ignoreEvents } from '../db/events/ignore-events.ts';
import { operationsAbout } from '../db/operations.ts';
import type { EventFilter } from '../db/read/event-filter.ts';
import type { Place } from '../db/read/event-place.ts';
import { listEvents } from '../db/read/events.ts';

/** Says what was ignored, and why, as the log of operations has it. */
export const ignoredInWords = (events: number, note: string | undefined): string =>
  `${counted(events, 'event')} ignored${note === undefined ? '' : `: ${note}`}`;

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

export interface Ignored {
  readonly by: string;
  readonly at: string;
  readonly note: string | null;
}

/** Reads who ignored events, by the log of operations; those of a filter are not named there. */
export async function whoIgnored(
  db: Executor,
  events: readonly { readonly id: string; readonly outcome: string }[],
): Promise<ReadonlyMap<string, Ignored>> {
  const ids = events.flatMap(({ id, outcome }) => (outcome === 'ignored' ? [id] : []));
  if (ids.length === 0) return new Map();
  const operations = await operationsAbout(db, ids, []);
  return new Map(
    operations
      .filter(({ action }) => action === 'events ignore')
      .flatMap(({ about, actor: by, at, detail }) => {
        const note = /^[\d,]+ events? ignored: (.*)$/s.exec(detail ?? '')?.[1] ?? null;
        return about.map((id) => [id, { by, at, note }] as const);
      }),
  );
}

export const describeIgnored = ({ by, at, note }: Ignored): string =>
  `ignored by ${by} at ${formatTime(at)}${note === null ? '' : `: ${note}`}`;

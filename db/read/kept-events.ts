import { sql } from 'drizzle-orm';
import type { DeliveredEvent, Replay } from '../../contract/delivery.ts';
import { batches } from '../../contract/limits.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { eventPayloads, journal } from '../schema/metersync.ts';
import type { EventFilter } from './event-filter.ts';
import type { Place } from './event-place.ts';
import { inOrder, readPart } from './found-events.ts';

/** A kept event, to be recorded again; when it was received is in Unix seconds and as ISO time. */
export type KeptEvent = Awaited<ReturnType<typeof keptEvents>>['events'][number];

/**
 * Lists matching kept events, the first ones first: all to which the next candidates lead. To pass
 * each one once while they are replayed, bound the filter by when they were recorded.
 */
export async function keptEvents(
  db: Executor,
  filter: EventFilter,
  replay: Replay,
  { candidates, after }: { candidates: number; after: Place | undefined },
) {
  // Requested ids are each answered, also those that cannot be replayed.
  const unapplied = replay !== 'all' && filter.ids === undefined;
  const portion = { candidates, limit: null, after, order: 'first first' } as const;
  const { ids, end } = await readPart(db, { ...filter, unapplied }, portion);
  const kept = await db
    .select({
      id: journal.id,
      outcome: journal.outcome,
      seconds: sql<number>`floor(extract(epoch from ${journal.receivedAt}))::float8`,
      iso: sql<string>`to_char(${journal.receivedAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
    })
    .from(journal)
    .where(isAmong(journal.id, ids));
  return { events: inOrder(ids, kept), end };
}

/** Reads kept events as they were delivered, by their ids; those whose payload was dropped are absent. */
export async function readDelivered(
  db: Executor,
  kept: readonly KeptEvent[],
): Promise<ReadonlyMap<string, DeliveredEvent>> {
  const { id, payload, body } = eventPayloads;
  const delivered = new Map<string, DeliveredEvent>();
  for (let from = 0; from < kept.length; from += batches.payloadsRead) {
    const part = kept.slice(from, from + batches.payloadsRead);
    const ids = part.map(({ id }) => id);
    const rows = await db
      .select({ id, payload: sql<string | null>`${payload}::text`, body })
      .from(eventPayloads)
      .where(isAmong(id, ids));
    const bytes = new Map(rows.map((row) => [row.id, row]));
    for (const { id, seconds, iso } of part) {
      const kept = bytes.get(id);
      const text = kept?.payload ?? kept?.body?.toString('utf8');
      if (text !== undefined)
        delivered.set(id, { id, timestamp: seconds, receivedAt: iso, body: text });
    }
  }
  return delivered;
}

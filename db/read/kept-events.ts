import { type SQL, sql } from 'drizzle-orm';
import type { DeliveredEvent, Replay } from '../../contract/delivery.ts';
import { batches } from '../../contract/limits.ts';
import type { EventOutcome } from '../../contract/names.ts';
import { array, type RowOf } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { eventPayloads } from '../schema/metersync.ts';
import { type EventFilter, event } from './event-filter.ts';
import type { Place } from './event-place.ts';
import { type FoundPart, readPart } from './found-events.ts';

/** A kept event, to be recorded again. */
export interface KeptEvent {
  readonly id: string;
  readonly outcome: EventOutcome;
  /** When it was received: Unix seconds, and ISO time. */
  readonly seconds: number;
  readonly iso: string;
}

const columns: SQL = sql`
        ${event.id},
        ${event.outcome},
        floor(extract(epoch from ${event.receivedAt}))::float8 as seconds,
        to_char(${event.receivedAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as iso`;

/**
 * Lists matching kept events, the first ones first: all to which the next candidates lead. To pass
 * each one once while they are replayed, bound the filter by when they were recorded.
 */
export async function keptEvents(
  db: Executor,
  filter: EventFilter,
  replay: Replay,
  { candidates, after }: { candidates: number; after: Place | undefined },
): Promise<FoundPart<KeptEvent>> {
  // Requested ids are each answered, also those that cannot be replayed.
  const unapplied = replay !== 'all' && filter.ids === undefined;
  const portion = { candidates, limit: null, after, order: 'first first' } as const;
  return await readPart<KeptEvent>(db, { ...filter, unapplied }, columns, portion);
}

/** Reads kept events as they were delivered, by their ids; those whose payload was dropped are absent. */
export async function readDelivered(
  db: Executor,
  kept: readonly KeptEvent[],
): Promise<ReadonlyMap<string, DeliveredEvent>> {
  const delivered = new Map<string, DeliveredEvent>();
  for (let from = 0; from < kept.length; from += batches.payloadsRead) {
    const part = kept.slice(from, from + batches.payloadsRead);
    const bytes = new Map((await readBytes(db, part)).map((row) => [row.id, row]));
    for (const { id, seconds, iso } of part) {
      const { payload, body } = bytes.get(id) ?? {};
      const text = payload ?? body?.toString('utf8');
      if (text !== undefined)
        delivered.set(id, { id, timestamp: seconds, receivedAt: iso, body: text });
    }
  }
  return delivered;
}

type Bytes = RowOf<typeof eventPayloads.id | typeof eventPayloads.body> & {
  readonly payload: string | null;
};

async function readBytes(db: Executor, kept: readonly KeptEvent[]): Promise<Bytes[]> {
  const ids = kept.map(({ id }) => id);
  const result = await db.execute<Bytes>(sql`
    select
      ${eventPayloads.id},
      ${eventPayloads.payload}::text as payload,
      ${eventPayloads.body}
    from ${eventPayloads}
    where ${eventPayloads.id} = any(${array(ids, 'text')})`);
  return result.rows;
}

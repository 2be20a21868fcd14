import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { type DecodedEvent, deletingTypes } from '../../contract/event.ts';
import { array, unnested } from '../connection/arrays.ts';
import { eventPayloads } from '../schema/metersync.ts';

/** Whether events of a type delete their record. */
export const isDeletion = (type: SQLWrapper): SQL =>
  sql`${type} = any(${array(deletingTypes, 'text')})`;

/** The payload of an event as a table of one row, or of no row if the payload was dropped. */
export const payloadOf = (id: SQLWrapper): SQL => sql`(
        select p.payload
        from ${eventPayloads} p
        where p.id = ${id}
        offset 0
      )`;

/** An event just inserted into the journal, with its times as the warehouse printed them. */
export interface RecordedEvent {
  readonly id: string;
  readonly event: DecodedEvent;
  readonly receivedAt: string;
  readonly occurredAt: string | null;
  readonly recordedAt: string;
  /** The texts that were replaced in the payload, by their paths, as JSON; absent if there are none. */
  readonly replaced?: string | undefined;
}

export const areReplaced = (events: readonly RecordedEvent[]): boolean =>
  events.some(({ replaced }) => replaced !== undefined);

/**
 * Events as a step `item (event_id, record_id, owner, r, type, deletes, occurred_at, recorded_at)`.
 * If texts were replaced in any of them, the step also has `replaced`.
 */
export const eventItems = (events: readonly RecordedEvent[]): SQL => sql`
  item as materialized (
    select
      t.event_id,
      t.record_id,
      t.owner,
      said.payload as r,
      t.type,
      t.deletes,
      t.occurred_at,
      t.recorded_at
      ${areReplaced(events) ? sql`, t.replaced::jsonb` : sql``}
    from ${recorded(events)}
      cross join lateral ${payloadOf(sql`t.event_id`)} said
  )`;

/** Events as a table `t`. */
export const recorded = (events: readonly RecordedEvent[]): SQL =>
  unnested('t', events, [
    ['event_id', 'text', ({ id }) => id],
    ['kind', 'text', ({ event }) => event.kind],
    ['record_id', 'text', ({ event }) => event.recordId],
    ['owner', 'uuid', ({ event }) => event.companyId],
    ['type', 'text', ({ event }) => event.type],
    ['deletes', 'boolean', ({ event }) => event.deletes],
    ['occurred_at', 'timestamptz', ({ occurredAt }) => occurredAt],
    ['recorded_at', 'timestamptz', ({ recordedAt }) => recordedAt],
    ...(areReplaced(events)
      ? [['replaced', 'text', ({ replaced }: RecordedEvent) => replaced ?? null] as const]
      : []),
  ]);

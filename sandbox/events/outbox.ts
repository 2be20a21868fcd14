import type { ClientBase } from 'pg';
import type { EventType } from './payloads.ts';

export interface PendingEvent {
  readonly companyId: string;
  readonly type: EventType;
  readonly payload: object;
}

export interface WrittenEvent {
  readonly seq: string;
  readonly id: string;
  readonly type: EventType;
}

export interface OutboxSettings {
  /** The service's time as a timestamp. */
  readonly now: string;
  /** Bounds within which each delivery is held back at first, and the number that draws it. */
  readonly delayMs: readonly [number, number];
  readonly drawSeed: number;
  readonly newMessageId: () => string;
}

/**
 * Writes events and their deliveries in the transaction of the change (so none is lost or invented), for the
 * organizations that have webhooks enabled (seed 6.1.1) and the endpoints that chose the type or none (6.1.2).
 */
export async function writeEvents(
  client: ClientBase,
  events: readonly PendingEvent[],
  settings: OutboxSettings,
): Promise<WrittenEvent[]> {
  if (events.length === 0) return [];
  const { rows } = await client.query<WrittenEvent>({
    name: 'write events',
    text: `insert into sandbox.events (id, organization_id, type, created, payload)
      select e.id, o.id, e.type, $5::timestamp, e.payload
      from unnest($1::text[], $2::uuid[], $3::text[], $4::text[]) with ordinality
        as e (id, company_id, type, payload, position)
      join sandbox.companies c on c.id = e.company_id
      join sandbox.organizations o on o.id = c.organization_id and o.webhooks_enabled
      order by e.position
      returning seq, id, type`,
    values: [
      events.map(() => settings.newMessageId()),
      events.map((event) => event.companyId),
      events.map((event) => event.type),
      events.map((event) => JSON.stringify(event.payload)),
      settings.now,
    ],
  });
  await addDeliveries(client, rows, settings);
  return rows;
}

async function addDeliveries(
  client: ClientBase,
  events: readonly WrittenEvent[],
  { now, delayMs, drawSeed }: OutboxSettings,
): Promise<void> {
  await client.query({
    name: 'add deliveries',
    text: `insert into sandbox.deliveries (event_seq, endpoint_id, due_at)
      select e.seq, p.id, $2::timestamp + interval '1 millisecond' * ($3::float8 + ($4::float8 - $3::float8)
        * (hashtextextended(e.id || p.id, $5::bigint) & 1048575) / 1048575)
      from sandbox.events e join sandbox.endpoints p on p.organization_id = e.organization_id
        and p.state = 'active' and (p.event_types = '{}' or e.type = any (p.event_types))
      where e.seq = any ($1::bigint[])
      order by e.seq`,
    values: [events.map((event) => event.seq), now, delayMs[0], delayMs[1], drawSeed],
  });
}

import type { ClientBase } from 'pg';
import type { CompanyObject, ConnectionFacts, SiteObject } from './records/company.ts';

/** Types of events (service.md 6.2). */
export const eventTypes = [
  'connection.created.v2',
  'connection.updated.v2',
  'connection.validated.v2',
  'document.created.v2',
  'document.updated.v2',
  'document.deleted.v2',
  'intervals.synced',
] as const;
export type EventType = (typeof eventTypes)[number];

interface Dated {
  readonly id: string;
  readonly created: string;
  readonly updated: string;
}

export interface ConnectionState extends Dated {
  readonly facts: ConnectionFacts;
}

/** The payload of `connection.created.v2` (service.md 2.4): no `eventType`, `old` or `protectedChanges`. */
export function connectionPayload({ id, created, updated, facts }: ConnectionState) {
  return {
    company: facts.company,
    created,
    datasource: { name: facts.datasource.name },
    externalId: facts.externalId,
    id,
    sitesRelations: facts.sitesRelations,
    status: facts.status,
    updated,
    url: facts.url,
  };
}

/** The payload of `connection.updated.v2` and `.validated.v2` (service.md 2.4). `old` has no secrets. */
export function connectionChangePayload(
  eventType: 'connection.updated.v2' | 'connection.validated.v2',
  connection: ConnectionState,
  protectedChanges: readonly string[],
  old: object,
) {
  return { ...connectionPayload(connection), eventType, protectedChanges, old };
}

export interface DocumentState extends Dated {
  readonly company: CompanyObject;
  readonly site: SiteObject;
}

/** The payload of events about documents (service.md 2.5). Only `document.updated.v2` has `old`. */
export function documentPayload(
  eventType: 'document.created.v2' | 'document.updated.v2' | 'document.deleted.v2',
  { id, company, site, created, updated }: DocumentState,
  old?: object,
) {
  return { eventType, id, company, site, created, updated, ...(old === undefined ? {} : { old }) };
}

interface IntervalSync {
  readonly meterId: string;
  readonly start: string;
  readonly end: string;
  readonly createdCount: number;
  readonly updatedCount: number;
  readonly companyExternalId: string | null;
  readonly accountNumber: string | null;
  readonly granularitySeconds: readonly number[];
  readonly usageUnits: readonly string[];
  readonly qualities: readonly string[];
}

/** The payload of `intervals.synced` (service.md 2.6): a range, no readings and no `eventType`. */
export function intervalsPayload(sync: IntervalSync) {
  return {
    meterId: sync.meterId,
    start: sync.start,
    end: sync.end,
    intervalCount: sync.createdCount + sync.updatedCount,
    createdCount: sync.createdCount,
    updatedCount: sync.updatedCount,
    companyExternalId: sync.companyExternalId,
    accountNumber: sync.accountNumber,
    granularitySeconds: sync.granularitySeconds,
    usageUnits: sync.usageUnits,
    qualities: sync.qualities,
  };
}

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

export interface DeliveryDelay {
  /** Null means all endpoints that have no delay of their own. */
  readonly endpointId: string | null;
  readonly leastMs: number;
  readonly mostMs: number;
  readonly seed: number;
}

export interface OutboxSettings {
  /** The service's time as a timestamp. */
  readonly now: string;
  /** How long the first attempts of deliveries are delayed. */
  readonly delays: readonly DeliveryDelay[];
  readonly newMessageId: () => string;
}

/**
 * Writes events and deliveries in the transaction of the change. Events need enabled webhooks (service.md
 * 6.1.1); deliveries an endpoint that chose the type, or no type at all (6.1.2).
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
  { now, delays }: OutboxSettings,
): Promise<void> {
  await client.query({
    name: 'add deliveries',
    text: `with held as (select * from unnest($3::text[], $4::float8[], $5::float8[], $6::bigint[])
        v (endpoint_id, least, most, seed))
      insert into sandbox.deliveries (event_seq, endpoint_id, due_at)
      select e.seq, p.id, $2::timestamp + interval '1 millisecond' * coalesce(
        h.least + (h.most - h.least) * (hashtextextended(e.id || p.id, h.seed) & 1048575) / 1048575, 0)
      from sandbox.events e join sandbox.endpoints p on p.organization_id = e.organization_id
        and p.state = 'active' and (p.event_types = '{}' or e.type = any (p.event_types))
      left join lateral (select * from held where endpoint_id = p.id or endpoint_id is null
        order by endpoint_id nulls last limit 1) h on true
      where e.seq = any ($1::bigint[])
      order by e.seq`,
    values: [
      events.map((event) => event.seq),
      now,
      delays.map((delay) => delay.endpointId),
      delays.map((delay) => delay.leastMs),
      delays.map((delay) => delay.mostMs),
      delays.map((delay) => delay.seed),
    ],
  });
}

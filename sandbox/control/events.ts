import type { Pool } from 'pg';

export interface ListedEvent {
  readonly seq: number;
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly payload: unknown;
}

/** Events in the order in which they were written, after event number `after`. */
export async function readEvents(pool: Pool, after: number, limit: number): Promise<ListedEvent[]> {
  const { rows } = await pool.query<ListedEvent>(
    `select seq::float8 as seq, id, type, to_char(created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created,
      payload::json as payload from sandbox.events where seq > $1 order by seq limit $2`,
    [after, limit],
  );
  return rows;
}

export interface ListedDelivery {
  readonly id: number;
  readonly eventId: string;
  readonly type: string;
  readonly endpointId: string;
  readonly state: string;
  readonly attempts: number;
  readonly duplicates: number;
  readonly dueAt: string;
}

export const deliveryStates = [
  'waiting',
  'in_flight',
  'delivered',
  'failed',
  'cancelled',
  'dropped',
] as const;

export interface DeliveriesAsked {
  /** An empty list means deliveries in any state. */
  readonly states: readonly string[];
  readonly endpointId: string | undefined;
  readonly after: number;
  readonly limit: number;
}

export async function readDeliveries(pool: Pool, asked: DeliveriesAsked): Promise<ListedDelivery[]> {
  const { rows } = await pool.query<ListedDelivery>(
    `select d.id::float8 as id, e.id as "eventId", e.type, d.endpoint_id as "endpointId", d.state, d.attempts,
      d.duplicates, to_char(d.due_at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "dueAt"
      from sandbox.deliveries d join sandbox.events e on e.seq = d.event_seq
      where d.id > $1 and ($3::text[] = '{}' or d.state = any ($3)) and ($4::text is null or d.endpoint_id = $4)
      order by d.id limit $2`,
    [asked.after, asked.limit, asked.states, asked.endpointId ?? null],
  );
  return rows;
}

export interface ListedAttempt {
  readonly number: number;
  readonly at: string;
  readonly status: number | null;
  readonly durationMs: number;
  readonly requestHeaders: Readonly<Record<string, string>>;
  readonly responseHeaders: Readonly<Record<string, unknown>> | null;
  readonly responseBody: string | null;
  readonly error: string | null;
  /** A second copy that a disturbance sent. */
  readonly duplicate: boolean;
}

/** The attempts of one delivery, in their order. */
export async function readAttempts(pool: Pool, deliveryId: string): Promise<ListedAttempt[]> {
  const { rows } = await pool.query<ListedAttempt>(
    `select number, to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as at, status, duration_ms as "durationMs",
      request_headers::json as "requestHeaders", response_headers::json as "responseHeaders",
      response_body as "responseBody", error, duplicate
      from sandbox.attempts where delivery_id = $1 order by at, number`,
    [deliveryId],
  );
  return rows;
}

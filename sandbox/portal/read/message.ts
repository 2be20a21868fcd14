import type { Pool } from 'pg';
import { notFound } from '../../problem.ts';
import type { MessageStatus } from '../views/status.ts';
import { isId } from './endpoints.ts';

export interface Message {
  readonly seq: string;
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly example: boolean;
  readonly payload: string;
}

/** The state of a message for one endpoint. `missing` if nothing was ever sent. */
export interface Standing {
  readonly endpointId: string;
  readonly url: string;
  readonly endpointState: 'active' | 'disabled' | 'removed';
  readonly status: MessageStatus;
  readonly attempts: number;
  readonly nextDue: string | null;
  readonly inFlight: boolean;
}

export interface Attempt {
  readonly endpointId: string;
  readonly deliveryId: string;
  readonly number: number;
  readonly at: string;
  readonly status: number | null;
  readonly durationMs: number;
  readonly requestHeaders: string;
  readonly responseHeaders: string | null;
  readonly responseBody: string | null;
  readonly error: string | null;
  readonly duplicate: boolean;
  /** The kind of replay that it belongs to. Null for the first delivery and its retries. */
  readonly replay: 'message' | 'failed' | 'missing' | null;
}

/** @throws Problem 404 if it does not exist or belongs to another organization */
export async function readMessage(pool: Pool, organizationId: string, id: string): Promise<Message> {
  if (!isId(id)) throw notFound('Message');
  const { rows } = await pool.query<Message>(
    `select seq::text as seq, id, type, example, payload, to_char(created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created
      from sandbox.events where organization_id = $1 and id = $2`,
    [organizationId, id],
  );
  const [message] = rows;
  if (message === undefined) throw notFound('Message');
  return message;
}

/** Reads the standing of the message for every endpoint that it went to or can be sent to. */
export async function readStandings(pool: Pool, organizationId: string, seq: string): Promise<Standing[]> {
  const { rows } = await pool.query<Standing>(
    `select p.id as "endpointId", p.url, p.state as "endpointState", coalesce(s.status, 'missing') as status,
        coalesce(s.attempts, 0) as attempts, coalesce(s.in_flight, false) as "inFlight",
        to_char(s.next_due, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "nextDue"
      from sandbox.endpoints p
      left join sandbox.message_standings s on s.endpoint_id = p.id and s.event_seq = $2
      where p.organization_id = $1 and (p.state <> 'removed' or s.event_seq is not null) order by p.position`,
    [organizationId, seq],
  );
  return rows;
}

/** How many attempts a page shows at most. These are the newest. */
export const attemptsShownMax = 200;

export async function readMessageAttempts(pool: Pool, seq: string): Promise<Attempt[]> {
  const { rows } = await pool.query<Attempt>(
    `select d.endpoint_id as "endpointId", d.id::text as "deliveryId", a.number, a.status, a.error, a.duplicate,
        a.duration_ms as "durationMs", a.request_headers as "requestHeaders",
        a.response_headers as "responseHeaders", a.response_body as "responseBody", r.kind as replay,
        to_char(a.at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as at
      from sandbox.deliveries d join sandbox.attempts a on a.delivery_id = d.id
      left join sandbox.replays r on r.id = d.replay_id
      where d.event_seq = $1 order by a.at desc, d.id desc, a.number desc limit $2`,
    [seq, attemptsShownMax],
  );
  return rows;
}

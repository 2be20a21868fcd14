import type { Pool } from 'pg';
import { notFound } from '../../problem.ts';

export interface Inbox {
  readonly token: string;
  readonly expiresAt: string;
}

/** A request as it arrived at an inspection URL. */
export interface InboxRequest {
  readonly id: string;
  readonly at: string;
  readonly method: string;
  /** A JSON object. */
  readonly headers: string;
  readonly body: Buffer;
  /** Whether the endpoint's secret signed it. */
  readonly verified: boolean;
  /** The message that a verified request contained. */
  readonly messageId: string | null;
  readonly type: string | null;
}

/** How many requests an inbox keeps. Its page shows all of them, and the oldest are deleted. */
export const inboxRequestsKept = 30;

/** @throws Problem 404 if the endpoint is not an inspection URL. */
export async function readInbox(pool: Pool, endpointId: string): Promise<Inbox> {
  const { rows } = await pool.query<Inbox>(
    `select token, to_char(expires_at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as "expiresAt"
      from sandbox.inboxes where endpoint_id = $1`,
    [endpointId],
  );
  const [inbox] = rows;
  if (inbox === undefined) throw notFound('Inbox');
  return inbox;
}

export async function readInboxRequests(pool: Pool, token: string): Promise<InboxRequest[]> {
  const { rows } = await pool.query<InboxRequest>(
    `select r.id::text as id, r.method, r.headers, r.body, r.verified, e.id as "messageId", e.type,
        to_char(r.at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as at
      from sandbox.inbox_requests r left join sandbox.events e on r.verified and e.id = r.message_id
      where r.token = $1 order by r.id desc limit $2`,
    [token, inboxRequestsKept],
  );
  return rows;
}

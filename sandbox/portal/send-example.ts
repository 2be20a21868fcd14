import type { Pool } from 'pg';
import { inTransaction } from '../database/transaction.ts';
import type { EventType } from '../events/payloads.ts';
import { Problem } from '../problem.ts';
import { examplePayload } from './examples.ts';

/** Sends an example event to one endpoint (service.md 6.5). Throws a Problem 409 while it is disabled. */
export function sendExample(
  pool: Pool,
  endpointId: string,
  type: EventType,
  made: { readonly messageId: string; readonly now: string },
): Promise<void> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ seq: string }>(
      `insert into sandbox.events (id, organization_id, type, created, payload, example)
        select $2, organization_id, $3, $4, $5, true from sandbox.endpoints
        where id = $1 and state = 'active' for update returning seq`,
      [endpointId, made.messageId, type, made.now, JSON.stringify(examplePayload(type, made.now))],
    );
    const [event] = rows;
    if (event === undefined) throw new Problem(409, 'This endpoint is disabled: enable it first.');
    await client.query(
      'insert into sandbox.deliveries (event_seq, endpoint_id, due_at) values ($1, $2, $3)',
      [event.seq, endpointId, made.now],
    );
  });
}

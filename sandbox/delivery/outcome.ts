import type { ClientBase, Pool } from 'pg';
import { inTransaction } from '../database/transaction.ts';
import { setEndpointState } from './endpoints.ts';
import { healthOf, updateHealth } from './health.ts';
import type { Answer } from './send.ts';

/** What became of one sending, to be written down with others. */
export interface Outcome {
  readonly deliveryId: string;
  readonly endpointId: string;
  readonly at: string;
  /** Undefined for a dropped delivery: nothing was sent. */
  readonly answer: Answer | undefined;
  /** A second copy: kept as an attempt, decides nothing. */
  readonly duplicate: boolean;
  readonly state: 'waiting' | 'delivered' | 'failed' | 'dropped';
  readonly number: number;
  /** When the next attempt is due, for `waiting`. */
  readonly dueAt: string | null;
}

/**
 * Writes outcomes in one transaction. A delivery that was cancelled meanwhile stays cancelled. Returns the
 * endpoints that were disabled because every attempt failed for five days (seed 3.2).
 */
export function recordOutcomes(pool: Pool, outcomes: readonly Outcome[]): Promise<string[]> {
  return inTransaction(pool, async (client) => {
    // Losing the last moment to a crash of Postgres means one repeated delivery; waiting for its disk, thousands.
    await client.query('set local synchronous_commit = off');
    await updateDeliveries(client, outcomes);
    await insertAttempts(
      client,
      outcomes.filter((outcome) => outcome.answer !== undefined),
    );
    const failing = await updateHealth(client, healthOf(outcomes));
    for (const id of failing) await setEndpointState(client, id, 'disabled');
    return failing;
  });
}

async function updateDeliveries(client: ClientBase, outcomes: readonly Outcome[]): Promise<void> {
  const firsts = outcomes.filter((outcome) => !outcome.duplicate);
  const copies = outcomes.filter((outcome) => outcome.duplicate);
  await client.query({
    name: 'record deliveries',
    text: `update sandbox.deliveries d
      set state = v.state, attempts = v.number, due_at = coalesce(v.due_at, d.due_at)
      from unnest($1::bigint[], $2::text[], $3::int[], $4::timestamp[]) v (id, state, number, due_at)
      where d.id = v.id and d.state = 'in_flight'`,
    values: [
      firsts.map((one) => one.deliveryId),
      firsts.map((one) => one.state),
      firsts.map((one) => one.number),
      firsts.map((one) => one.dueAt),
    ],
  });
  if (copies.length === 0) return;
  await client.query(
    'update sandbox.deliveries set duplicates = duplicates + 1 where id = any ($1::bigint[])',
    [copies.map((one) => one.deliveryId)],
  );
}

async function insertAttempts(client: ClientBase, sent: readonly Outcome[]): Promise<void> {
  await client.query({
    name: 'record attempts',
    text: `insert into sandbox.attempts (delivery_id, number, at, status, duration_ms, request_headers,
        response_headers, response_body, error, duplicate)
      select * from unnest($1::bigint[], $2::int[], $3::timestamp[], $4::int[], $5::int[], $6::text[],
        $7::text[], $8::text[], $9::text[], $10::boolean[])`,
    values: [
      sent.map((one) => one.deliveryId),
      sent.map((one) => one.number),
      sent.map((one) => one.at),
      sent.map((one) => one.answer?.status),
      sent.map((one) => one.answer?.durationMs),
      sent.map((one) => one.answer?.requestHeaders),
      sent.map((one) => one.answer?.responseHeaders),
      sent.map((one) => one.answer?.responseBody),
      sent.map((one) => one.answer?.error),
      sent.map((one) => one.duplicate),
    ],
  });
}

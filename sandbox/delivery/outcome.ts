import type { Pool } from 'pg';
import { inTransaction } from '../database/transaction.ts';
import type { Answer } from './send.ts';

/** What became of one sending, to be written down with others. */
export interface Outcome {
  readonly deliveryId: string;
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

/** Writes outcomes in one transaction. A delivery that was cancelled meanwhile stays cancelled. */
export async function recordOutcomes(pool: Pool, outcomes: readonly Outcome[]): Promise<void> {
  const firsts = outcomes.filter((outcome) => !outcome.duplicate);
  const seconds = outcomes.filter((outcome) => outcome.duplicate);
  const sent = outcomes.filter((outcome) => outcome.answer !== undefined);
  await inTransaction(pool, async (client) => {
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
    if (seconds.length > 0) {
      await client.query(
        'update sandbox.deliveries set duplicates = duplicates + 1 where id = any ($1::bigint[])',
        [seconds.map((one) => one.deliveryId)],
      );
    }
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
  });
}

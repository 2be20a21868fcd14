import type { Pool } from 'pg';
import { healthOf } from './health.ts';
import { failingSecondsMax } from './schedule.ts';
import type { Answer } from './send.ts';

/** The outcome of one attempt, to be recorded with others. */
export interface Outcome {
  readonly deliveryId: string;
  readonly endpointId: string;
  readonly at: string;
  /** Undefined for a dropped delivery: nothing was sent. */
  readonly answer: Answer | undefined;
  /** Whether this was a second copy, an attempt that does not change the state of the delivery. */
  readonly duplicate: boolean;
  readonly state: 'waiting' | 'delivered' | 'failed' | 'dropped';
  readonly number: number;
  /** When the next attempt is due, for `waiting`. */
  readonly dueAt: string | null;
}

/** A batch's result for a delivery: the outcome of its own attempt, if any, and the number of copies. */
interface Moved {
  readonly id: string;
  readonly first: Outcome | undefined;
  readonly copies: number;
}

function movedBy(outcomes: readonly Outcome[]): Moved[] {
  const moved = new Map<string, Moved>();
  for (const outcome of outcomes) {
    const before = moved.get(outcome.deliveryId) ?? { id: outcome.deliveryId, first: undefined, copies: 0 };
    moved.set(
      outcome.deliveryId,
      outcome.duplicate ? { ...before, copies: before.copies + 1 } : { ...before, first: outcome },
    );
  }
  return [...moved.values()];
}

/**
 * Records outcomes in one statement. Deliveries are in flight until then, so it should be fast. A delivery
 * that was cancelled meanwhile stays cancelled. The statement also stores since when an endpoint has failed,
 * and a success clears that time. Returns endpoints that have failed for five days (service.md 3.2).
 */
export async function recordOutcomes(pool: Pool, outcomes: readonly Outcome[]): Promise<string[]> {
  const moved = movedBy(outcomes);
  const sent = outcomes.filter((outcome) => outcome.answer !== undefined);
  const health = healthOf(outcomes);
  const { rows } = await pool.query<{ id: string }>({
    name: 'record outcomes',
    text: recordSql,
    values: [
      moved.map(({ id }) => id),
      moved.map(({ first }) => first?.state),
      moved.map(({ first }) => first?.number),
      moved.map(({ first }) => first?.dueAt),
      moved.map(({ copies }) => copies),
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
      health.map((one) => one.endpointId),
      health.map((one) => one.succeeded),
      health.map((one) => one.failingSince),
      health.map((one) => one.lastFailure),
      failingSecondsMax,
    ],
  });
  return rows.map((row) => row.id);
}

const recordSql = `
with moved as (
    update sandbox.deliveries d set duplicates = d.duplicates + v.copies,
      state = case when d.state = 'in_flight' then coalesce(v.state, d.state) else d.state end,
      attempts = coalesce(v.number, d.attempts), due_at = coalesce(v.due_at, d.due_at)
    from unnest($1::bigint[], $2::text[], $3::int[], $4::timestamp[], $5::int[]) v (id, state, number, due_at, copies)
    where d.id = v.id),
  kept as (
    insert into sandbox.attempts (delivery_id, number, at, status, duration_ms, request_headers, response_headers,
      response_body, error, duplicate)
    select * from unnest($6::bigint[], $7::int[], $8::timestamp[], $9::int[], $10::int[], $11::text[], $12::text[],
      $13::text[], $14::text[], $15::boolean[])),
  said as (
    select * from unnest($16::text[], $17::boolean[], $18::timestamp[], $19::timestamp[])
      v (id, succeeded, failing_since, last_failure)),
  failing as (
    select s.id, s.last_failure, e.failing_since as before,
      case when s.succeeded then s.failing_since else coalesce(e.failing_since, s.failing_since) end as since
    from said s join sandbox.endpoints e on e.id = s.id and e.state = 'active'),
  noted as (
    update sandbox.endpoints e set failing_since = f.since from failing f
    where e.id = f.id and f.since is distinct from f.before)
select id from failing where last_failure - since >= $20::float8 * interval '1 second'`;

import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import { inTransaction } from '../database.ts';
import { setEndpointState } from './endpoints.ts';
import type { Answer } from './sender.ts';

interface Ledger {
  /** Resolves once the outcome is recorded. */
  add(outcome: Outcome): Promise<void>;
  /** Outcomes that are not recorded yet. */
  open(): number;
  /** Resolves once all outcomes are recorded, or when recording them failed once more. */
  close(): Promise<void>;
}

interface LedgerDependencies {
  readonly pool: Pool;
  readonly report: (error: Error) => void;
  /** Called after endpoints were disabled because every attempt failed for too long (service.md 3.2). */
  readonly disabled: (endpointIds: readonly string[]) => void;
}

interface Entry {
  readonly outcome: Outcome;
  readonly written: () => void;
}

/** Wait after a failure of the database, before the next attempt. */
const retryMs = 500;

/** Records outcomes together. Outcomes that arrive while a transaction runs wait for the next transaction. */
export function createLedger({ pool, report, disabled }: LedgerDependencies): Ledger {
  let waiting: Entry[] = [];
  let underway: Entry[] = [];
  let writing: Promise<void> | undefined;
  let closing = false;

  const disable = async (ids: readonly string[]) => {
    await inTransaction(pool, async (client) => {
      for (const id of ids) await setEndpointState(client, id, 'disabled');
    });
    disabled(ids);
  };

  const writeAll = async () => {
    while (waiting.length > 0) {
      underway = waiting;
      waiting = [];
      try {
        const ids = await recordOutcomes(
          pool,
          underway.map((entry) => entry.outcome),
        );
        // Outcomes must not be recorded twice, so an error is only reported. Disabling is tried again later.
        if (ids.length > 0) await disable(ids).catch(report);
        for (const { written } of underway) written();
      } catch (error) {
        report(error instanceof Error ? error : new Error(String(error)));
        if (closing) break;
        waiting = [...underway, ...waiting];
        await wait(retryMs);
      }
      underway = [];
    }
    writing = undefined;
  };

  return {
    add(outcome) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ outcome, written: resolve });
      writing ??= writeAll();
      return promise;
    },
    open: () => waiting.length + underway.length,
    async close() {
      closing = true;
      await writing;
      // Deliveries that were not recorded are still in flight, so the next start sends them again.
      for (const { written } of [...underway, ...waiting]) written();
    },
  };
}

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
async function recordOutcomes(pool: Pool, outcomes: readonly Outcome[]): Promise<string[]> {
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

/** The outcome of one attempt, from which health is derived. */
interface Sending {
  readonly endpointId: string;
  readonly state: string;
  readonly at: string;
  readonly duplicate: boolean;
  /** Undefined if nothing was sent. */
  readonly answer: object | undefined;
}

/** Judges an endpoint by a batch of outcomes: whether it works, and since when it has failed. */
interface Health {
  readonly endpointId: string;
  readonly succeeded: boolean;
  /** The first failure after the last success of the batch. */
  readonly failingSince: string | null;
  readonly lastFailure: string | null;
}

function healthOf(outcomes: readonly Sending[]): Health[] {
  const health = new Map<string, Health>();
  for (const { endpointId, state, at, duplicate, answer } of outcomes) {
    if (duplicate || answer === undefined) continue;
    const before = health.get(endpointId);
    const succeeded = state === 'delivered';
    health.set(endpointId, {
      endpointId,
      succeeded: succeeded || (before?.succeeded ?? false),
      failingSince: succeeded ? null : (before?.failingSince ?? at),
      lastFailure: succeeded ? null : at,
    });
  }
  return [...health.values()];
}

/** A delivery that was claimed because it is due, to be sent now. */
export interface Claimed {
  readonly id: string;
  /** Attempts made before this one. */
  readonly attempts: number;
  readonly eventId: string;
  readonly payload: string;
}

/** Claims due deliveries of an endpoint, the oldest first. No other claim gets the same ones. */
export async function claimDue(
  pool: Pool,
  endpointId: string,
  now: string,
  limit: number,
): Promise<Claimed[]> {
  const { rows } = await pool.query<Claimed>({
    name: 'claim due',
    text: `with due as (
        select id from sandbox.deliveries where endpoint_id = $1 and state = 'waiting' and due_at <= $2::timestamp
        order by due_at, id limit $3 for update skip locked)
      update sandbox.deliveries d set state = 'in_flight' from due, sandbox.events e
      where d.id = due.id and e.seq = d.event_seq
      returning d.id, d.attempts, e.id as "eventId", e.payload`,
    values: [endpointId, now, limit],
  });
  return rows.sort((a, b) => Number(a.id) - Number(b.id));
}

/** When the next delivery of an endpoint is due, as a timestamp. */
export async function nextDue(pool: Pool, endpointId: string): Promise<string | undefined> {
  const { rows } = await pool.query<{ due: string | null }>({
    name: 'next due',
    text: `select to_char(min(due_at), 'YYYY-MM-DD"T"HH24:MI:SS.US') as due
      from sandbox.deliveries where endpoint_id = $1 and state = 'waiting'`,
    values: [endpointId],
  });
  return rows[0]?.due ?? undefined;
}

/** Gives back claimed deliveries that were not sent. */
export async function unclaim(pool: Pool, claimed: readonly Claimed[]): Promise<void> {
  if (claimed.length === 0) return;
  await pool.query(
    `update sandbox.deliveries set state = 'waiting' where state = 'in_flight' and id = any ($1::bigint[])`,
    [claimed.map(({ id }) => id)],
  );
}

/** Requeues deliveries that were in flight when the sandbox was killed: they may repeat, but are never lost. */
export async function releaseClaims(pool: Pool): Promise<void> {
  await pool.query(`update sandbox.deliveries set state = 'waiting' where state = 'in_flight'`);
}

/** service.md 3.2: an endpoint whose every attempt failed for this long is disabled. */
export const failingSecondsMax = 5 * 24 * 3600;

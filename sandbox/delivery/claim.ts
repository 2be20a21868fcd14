import type { Pool } from 'pg';

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

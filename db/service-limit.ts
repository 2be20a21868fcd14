import { eq, lt, or, type SQL, sql } from 'drizzle-orm';
import { requestPolicy } from '../contract/retry-policy.ts';
import type { Database, Executor } from './connect.ts';
import { lock } from './locks.ts';
import { serviceGate, serviceWorkers } from './schema/metersync.ts';

/** What a worker knows of others that share its limit of requests. */
export interface LimitState {
  /** Live workers, including this one, and how many of them come before it. */
  readonly workers: number;
  readonly rank: number;
  /** Milliseconds since 1970 by the warehouse's clock. */
  readonly now: number;
  /** Microseconds since 1970 by the warehouse's clock; 0 if the gate was never closed. */
  readonly closedUntil: number;
  /**
   * Milliseconds until then, as many as a request may ask for: the clock may have been set back.
   * Negative when it has passed.
   */
  readonly closedForMs: number;
}

/** A worker that was seen later than now died before the clock was set back. */
const isLive = (goneAfterMs: number): SQL => {
  const recent = sql`make_interval(secs => ${goneAfterMs / 1000})`;
  return sql`${serviceWorkers.seenAt}
        between clock_timestamp() - ${recent} and clock_timestamp() + ${recent}`;
};

/**
 * Notes that a worker lives, and reads the others' notes.
 * @param goneAfterMs how long without a sign of life until a worker's part goes to the others
 */
export async function beat(
  db: Executor,
  workerId: string,
  goneAfterMs: number,
): Promise<LimitState> {
  const { closedUntil } = serviceGate;
  const result = await db.execute<{
    workers: number;
    rank: number;
    now: number;
    until: string;
    left: number;
  }>(sql`
    with own as (
      insert into ${serviceWorkers} (worker_id)
      values (${workerId}::uuid)
      on conflict (worker_id) do update set seen_at = clock_timestamp()
    ), live as (
      select ${serviceWorkers.workerId}
      from ${serviceWorkers}
      where ${isLive(goneAfterMs)}
      -- The statement does not see the row that it inserts.
      union
      select ${workerId}::uuid
    ), gate as (
      select
        extract(epoch from ${closedUntil}) * 1000000 as until,
        least(
          extract(epoch from ${closedUntil} - clock_timestamp()) * 1000,
          ${requestPolicy.retryAfterMaxMs}::int
        ) as left_ms
      from ${serviceGate}
    )
    select
      count(*)::int as workers,
      count(*) filter (where worker_id < ${workerId}::uuid)::int as rank,
      extract(epoch from clock_timestamp())::float8 * 1000 as now,
      coalesce((select until from gate), 0)::bigint as until,
      coalesce((select left_ms from gate), 0)::float8 as left
    from live`);
  const row = result.rows[0];
  if (row === undefined) throw new Error('a query without groups has one row');
  const { workers, rank, now, until, left } = row;
  return { workers, rank, now, closedUntil: Number(until), closedForMs: left };
}

/** A worker's part of the limit. */
export interface Claimed {
  /** Requests that it may have in flight from now on. */
  readonly granted: number;
  /** Its noted part: more than granted while it still has more in flight. */
  readonly held: number;
}

/** Takes what other workers leave of the wanted part, and gives back the rest. */
export async function claim(
  db: Database,
  workerId: string,
  {
    wanted,
    limit,
    inFlight,
    goneAfterMs,
  }: {
    readonly wanted: number;
    readonly limit: number;
    readonly inFlight: number;
    readonly goneAfterMs: number;
  },
): Promise<Claimed> {
  return await db.transaction(async (tx) => {
    await lock(tx, 'serviceWorkers', 'inTurn');
    const result = await tx.execute<{ granted: number; held: number }>(sql`
      with granted as (
        select greatest(0, least(${wanted}::int, ${limit}::int - coalesce(sum(held), 0)))::int as n
        from ${serviceWorkers}
        where ${serviceWorkers.workerId} <> ${workerId}::uuid
          and ${isLive(goneAfterMs)}
      )
      update ${serviceWorkers} own
      set held = greatest(granted.n, ${inFlight}::int)
      from granted
      where own.worker_id = ${workerId}::uuid
      returning granted.n as granted, own.held`);
    return result.rows[0] ?? { granted: 0, held: 0 };
  });
}

/**
 * Closes the gate for all workers, for the longest time that any of them asked; returns until when.
 */
export async function closeGate(db: Executor, ms: number): Promise<number> {
  const result = await db.execute<{ until: string }>(sql`
    insert into ${serviceGate} (closed_until)
    values (clock_timestamp() + make_interval(secs => ${ms / 1000}))
    on conflict (one) do update set
      closed_until = greatest(${serviceGate.closedUntil}, excluded.closed_until),
      updated_at = clock_timestamp()
    returning (extract(epoch from closed_until) * 1000000)::bigint as until`);
  return Number(result.rows[0]?.until ?? 0);
}

/** Removes a worker, and those that have been silent for a day. */
export async function leave(db: Executor, workerId: string): Promise<void> {
  const longAgo = sql`clock_timestamp() - interval '1 day'`;
  await db
    .delete(serviceWorkers)
    .where(or(eq(serviceWorkers.workerId, workerId), lt(serviceWorkers.seenAt, longAgo)));
}

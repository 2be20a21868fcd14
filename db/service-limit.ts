import { eq, lt, or, sql } from 'drizzle-orm';
import type { Executor } from './connect.ts';
import { serviceGate, serviceWorkers } from './schema/metersync.ts';

/** Seconds without a sign of life after which a worker's share goes to the others. */
const goneAfterSeconds = 10;

/** What the workers that share one limit of requests know of one another. */
export interface LimitState {
  /** Workers that live, this one among them, and how many of them come before it. */
  readonly workers: number;
  readonly rank: number;
  /** Microseconds since 1970 by the warehouse's clock, 0 when the gate was never closed. */
  readonly closedUntil: number;
  /** Milliseconds until then; negative when it has passed. */
  readonly closedForMs: number;
}

/** Notes that a worker lives, and reads what the others noted. */
export async function beat(db: Executor, workerId: string): Promise<LimitState> {
  const { closedUntil } = serviceGate;
  const result = await db.execute<{
    workers: number;
    rank: number;
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
      where ${serviceWorkers.seenAt}
        > clock_timestamp() - make_interval(secs => ${goneAfterSeconds})
      -- The row that this statement inserts cannot be seen by it.
      union
      select ${workerId}::uuid
    ), gate as (
      select
        extract(epoch from ${closedUntil}) * 1000000 as until,
        extract(epoch from ${closedUntil} - clock_timestamp()) * 1000 as left_ms
      from ${serviceGate}
    )
    select
      count(*)::int as workers,
      count(*) filter (where worker_id < ${workerId}::uuid)::int as rank,
      coalesce((select until from gate), 0)::bigint as until,
      coalesce((select left_ms from gate), 0)::float8 as left
    from live`);
  const row = result.rows[0];
  if (row === undefined) throw new Error('a query without groups has one row');
  const { workers, rank, until, left } = row;
  return { workers, rank, closedUntil: Number(until), closedForMs: left };
}

/** Closes the gate for all workers, for the longest that any of them asked; returns until when. */
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

/** Takes a worker out, and those that went without a word long ago. */
export async function leave(db: Executor, workerId: string): Promise<void> {
  const longAgo = sql`clock_timestamp() - interval '1 day'`;
  await db
    .delete(serviceWorkers)
    .where(or(eq(serviceWorkers.workerId, workerId), lt(serviceWorkers.seenAt, longAgo)));
}

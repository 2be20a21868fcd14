import { type SQLWrapper, sql } from 'drizzle-orm';
import { notifyPolicy } from '../../contract/retry-policy.ts';
import type { RefusedDeliveries } from '../../health/measured.ts';
import { readAllSince } from '../backfill/runs.ts';
import type { Executor } from '../connection/connect.ts';
import { heartbeat } from '../schema/metersync.ts';

/**
 * The key of the number of refused deliveries before `refused_since`, next to the reasons in
 * `refused`. It is kept until a complete run of all companies has begun after them.
 */
const earlier = 'earlier';

/** Adds up all counts of a column of refused deliveries. */
const sumOf = (refused: SQLWrapper) =>
  sql`(select sum(count::bigint) from jsonb_each_text(${refused}) each (reason, count))`;

/** Whether the earlier refusals are over, because receivers refused nothing for some minutes. */
const isOver = sql`coalesce(
  ${heartbeat.refusedUntil}
    < clock_timestamp() - make_interval(secs => ${notifyPolicy.refusedSeconds}),
  true
)`;

/** Adds deliveries that a receiver refused to the recently refused deliveries. */
export async function noteRefused(
  db: Executor,
  reasons: Readonly<Record<string, number>>,
): Promise<void> {
  await db
    .insert(heartbeat)
    .values({ refused: reasons, refusedSince: clock, refusedUntil: clock })
    .onConflictDoUpdate({
      target: heartbeat.one,
      set: {
        refused: sql`case
          when ${isOver} and ${isRead(db)} then excluded.refused
          when ${isOver} then excluded.refused
            || jsonb_build_object(${earlier}::text, ${sumOf(heartbeat.refused)})
          else (
            select jsonb_object_agg(reason, count)
            from (
              select reason, sum(count::bigint) as count
              from (
                select * from jsonb_each_text(${heartbeat.refused})
                union all
                select * from jsonb_each_text(excluded.refused)
              ) each (reason, count)
              group by reason
            ) summed
          )
        end`,
        refusedSince: sql`case when ${isOver} then excluded.refused_since else ${heartbeat.refusedSince} end`,
        refusedUntil: sql`excluded.refused_until`,
      },
    });
}

const clock = sql`clock_timestamp()`;

/** Whether a complete run has read everything since the last refusal, or nothing was refused yet. */
const isRead = (db: Executor) =>
  sql<boolean>`(${heartbeat.refused} is null or ${readAllSince(db, sql`${heartbeat.refusedUntil}`)})`;

/** Reads what receivers refused; null if they refused nothing yet. */
export async function readRefused(db: Executor): Promise<RefusedDeliveries | null> {
  const [found] = await db
    .select({
      reasons: heartbeat.refused,
      since: heartbeat.refusedSince,
      until: heartbeat.refusedUntil,
      untilSecondsAgo: sql<number>`extract(epoch from clock_timestamp() - ${heartbeat.refusedUntil})::float8`,
      lastedSeconds: sql<number>`extract(epoch from ${heartbeat.refusedUntil} - ${heartbeat.refusedSince})::float8`,
      unread: sql<number>`(case when ${isRead(db)} then 0 else ${sumOf(heartbeat.refused)} end)::float8`,
    })
    .from(heartbeat);
  if (!found || found.reasons === null || found.since === null || found.until === null) return null;
  const { [earlier]: _, ...reasons } = found.reasons;
  return { ...found, reasons, since: found.since, until: found.until };
}

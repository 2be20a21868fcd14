import { sql } from 'drizzle-orm';
import { notifyPolicy } from '../../contract/retry-policy.ts';
import type { Refused } from '../../health/measured.ts';
import type { Executor } from '../connection/connect.ts';
import { heartbeat } from '../schema/metersync.ts';

/** Whether the earlier refusals are over, because receivers refused nothing for some minutes. */
const isOver = sql`coalesce(
  ${heartbeat.refusedUntil} < clock_timestamp() - make_interval(secs => ${notifyPolicy.refusedSeconds}),
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
          when ${isOver} then excluded.refused
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

/** Reads what receivers refused; null if they refused nothing yet. */
export async function readRefused(db: Executor): Promise<Refused | null> {
  const [found] = await db
    .select({
      reasons: heartbeat.refused,
      since: heartbeat.refusedSince,
      untilSecondsAgo: sql<number>`extract(epoch from clock_timestamp() - ${heartbeat.refusedUntil})::float8`,
    })
    .from(heartbeat);
  if (!found || found.reasons === null || found.since === null) return null;
  return { reasons: found.reasons, since: found.since, untilSecondsAgo: found.untilSecondsAgo };
}

import { type SQL, sql } from 'drizzle-orm';
import { batches } from '../../contract/limits.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { serviceParked } from '../catch-up/parking.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { eventKind, ownerOf, queueOf } from '../events/queue.ts';
import { journal } from '../schema/metersync.ts';

/**
 * Which pending events are searched: the first due event of each of these owners, the
 * `batches.dueEvents` events that have been due longest, or the first due event of every owner.
 */
export type DueSource = readonly string[] | 'longest' | 'each';

/**
 * Returns at most `limit` owners of due events, those that have been due longest first, and how
 * many of their events were found. Returns none while the service is parked. It is raw because
 * catch-ups ask it again and again, and because it looks up each waiting owner once with a
 * recursive query. Measured: 0.07 ms and 2 blocks for one owner; 0.11 ms and 18 blocks for seven.
 */
export async function ownersDue(
  db: Executor,
  kind: CatchUpKind,
  source: DueSource,
  limit: number,
): Promise<{ owners: string[]; events: number }> {
  const { rows } = await hot(db, 'ownersDue').execute<{ owner: string; events: number }>(sql`
    select owner, count(*)::int as events
    from ${sourceOf(kind, source)}
    where not ${serviceParked}
    group by owner
    order by min(due_at), owner
    limit ${limit}`);
  const events = rows.reduce((sum, row) => sum + row.events, 0);
  return { owners: rows.map(({ owner }) => owner), events };
}

function sourceOf(kind: CatchUpKind, source: DueSource): SQL {
  if (source === 'longest') return dueLongest(kind);
  return source === 'each' ? firstDueOfEach(kind) : firstDueOf(kind, source);
}

const firstDueOf = (kind: CatchUpKind, owners: readonly string[]): SQL => sql`
      unnest(${array(owners, 'text')}) as asked (owner)
      cross join lateral (
        select s.due_at
        from ${journal} s
        where s.queue = ${queueOf(eventKind[kind], sql`asked.owner`)}
          and s.due_at <= (select clock_timestamp())
        order by s.due_at
        limit 1
      ) first_due`;

const dueLongest = (kind: CatchUpKind): SQL => sql`(
      select ${ownerOf(sql`s`)} as owner, s.due_at
      from ${journal} s
      where s.kind = ${eventKind[kind]}
        and s.due_at <= (select clock_timestamp())
      order by s.kind, s.due_at
      limit ${batches.dueEvents}
    ) longest`;

const firstDueOfEach = (kind: CatchUpKind): SQL => sql`(
      with recursive waiting as (
        select ${`${eventKind[kind]}/`} as queue
        union all
        select (
          select s.queue
          from ${journal} s
          where s.queue > w.queue
          order by s.queue
          limit 1
        )
        from waiting w
        where w.queue like ${`${eventKind[kind]}/%`}
      )
      select ${ownerOf(sql`s`)} as owner, s.due_at
      from waiting w
        cross join lateral (
          select s.queue, s.due_at
          from ${journal} s
          where s.queue = w.queue
            and s.due_at <= (select clock_timestamp())
          order by s.due_at
          limit 1
        ) s
      where w.queue like ${`${eventKind[kind]}/%`}
    ) each_owner`;

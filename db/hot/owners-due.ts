import { type SQL, sql } from 'drizzle-orm';
import { batches } from '../../contract/limits.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { isServiceClosed } from '../events/gates.ts';
import { eventKind, ownerOf, queueOf } from '../events/queue.ts';
import { gates, journal } from '../schema/metersync.ts';

/**
 * Which pending events are searched: the first due event of each of these owners, the
 * `batches.dueEvents` events that have been due longest, or the first due event of every owner.
 */
export type DueSource = readonly string[] | 'longest' | 'each';

/**
 * Returns at most `limit` owners of events that were due at `asOf`, those that have been due longest first,
 * and how many events were found. It leaves out owners whose gate is closed, unless it is time for its next
 * probe, and all owners while the gate for all requests is closed. Raw because the sweep asks it again and
 * again, and because it looks up each waiting owner once with a recursive query. Measured: 0.07 ms and 2
 * blocks for one owner; 0.11 ms and 18 blocks for seven.
 */
export async function ownersDue(
  db: Executor,
  kind: CatchUpKind,
  source: DueSource,
  { limit, asOf }: { readonly limit: number; readonly asOf: string },
): Promise<{ owners: string[]; events: number }> {
  const { rows } = await hot(db, 'ownersDue').execute<{ owner: string | null; events: number }>(sql`
    with found as materialized (
      select owner, due_at
      from ${sourceOf(kind, source, sql`${asOf}::timestamptz`)}
    )
    select counted.events, due.owner
    from (select count(*)::int as events from found) counted
      left join lateral (
        select owner, min(due_at) as due_at
        from found
        where not ${isServiceClosed}
        group by owner
        having not exists (
          select
          from ${gates}
          where scope = ${queueOf(eventKind[kind], sql`owner`)}
            and next_probe_at > ${asOf}::timestamptz
        )
        order by min(due_at), owner
        limit ${limit}
      ) due on true
    order by due.due_at, due.owner`);
  return { owners: rows.flatMap(({ owner }) => owner ?? []), events: rows[0]?.events ?? 0 };
}

function sourceOf(kind: CatchUpKind, source: DueSource, asOf: SQL): SQL {
  if (source === 'longest') return dueLongest(kind, asOf);
  return source === 'each' ? firstDueOfEach(kind, asOf) : firstDueOf(kind, source, asOf);
}

const firstDueOf = (kind: CatchUpKind, owners: readonly string[], asOf: SQL): SQL => sql`
      unnest(${array(owners, 'text')}) as asked (owner)
      cross join lateral (
        select s.due_at
        from ${journal} s
        where s.queue = ${queueOf(eventKind[kind], sql`asked.owner`)}
          and s.due_at <= ${asOf}
        order by s.due_at
        limit 1
      ) first_due`;

const dueLongest = (kind: CatchUpKind, asOf: SQL): SQL => sql`(
      select ${ownerOf(sql`s`)} as owner, s.due_at
      from ${journal} s
      where s.kind = ${eventKind[kind]}
        and s.due_at <= ${asOf}
      order by s.kind, s.due_at
      limit ${batches.dueEvents}
    ) longest`;

const firstDueOfEach = (kind: CatchUpKind, asOf: SQL): SQL => sql`(
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
            and s.due_at <= ${asOf}
          order by s.due_at
          limit 1
        ) s
      where w.queue like ${`${eventKind[kind]}/%`}
    ) each_owner`;

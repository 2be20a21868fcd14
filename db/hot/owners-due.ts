import { type SQL, sql } from 'drizzle-orm';
import { batches } from '../../contract/limits.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { serviceParked } from '../catch-up/parking.ts';
import { eventKind, keyOf } from '../catch-up/stale.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { staleRecords } from '../schema/metersync.ts';

/**
 * Which stale records are searched: the first due record of each of these owners, the
 * `batches.dueRecords` records that have been due longest, or the first due record of every owner.
 */
export type DueSource = readonly string[] | 'longest' | 'each';

/**
 * Returns at most `limit` owners of due records, those that have been due longest first, and how
 * many of their records were found. Returns none while the service is parked. It is raw because
 * catch-ups ask it again and again, and because it looks up each waiting owner once with a
 * recursive query. Measured: 0.07 ms and 2 blocks for one owner; 0.11 ms and 18 blocks for seven.
 */
export async function ownersDue(
  db: Executor,
  kind: CatchUpKind,
  source: DueSource,
  limit: number,
): Promise<{ owners: string[]; records: number }> {
  const { rows } = await hot(db, 'ownersDue').execute<{ owner: string; records: number }>(sql`
    select owner, count(*)::int as records
    from ${sourceOf(kind, source)}
    where not ${serviceParked}
    group by owner
    order by min(due_at), owner
    limit ${limit}`);
  const records = rows.reduce((sum, row) => sum + row.records, 0);
  return { owners: rows.map(({ owner }) => owner), records };
}

function sourceOf(kind: CatchUpKind, source: DueSource): SQL {
  if (source === 'longest') return dueLongest(kind);
  return source === 'each' ? firstDueOfEach(kind) : firstDueOf(kind, source);
}

const firstDueOf = (kind: CatchUpKind, owners: readonly string[]): SQL => sql`
      unnest(${array(owners, 'text')}) as asked (owner)
      cross join lateral (
        select s.due_at
        from ${staleRecords} s
        where s.queue = ${keyOf(eventKind[kind], sql`asked.owner`)}
          and s.due_at <= clock_timestamp()
        order by s.due_at
        limit 1
      ) first_due`;

const dueLongest = (kind: CatchUpKind): SQL => sql`(
      select s.owner, s.due_at
      from ${staleRecords} s
      where s.kind = ${eventKind[kind]}
        and s.due_at <= clock_timestamp()
      order by s.kind, s.due_at
      limit ${batches.dueRecords}
    ) longest`;

const firstDueOfEach = (kind: CatchUpKind): SQL => sql`(
      with recursive waiting as (
        (
          select s.queue
          from ${staleRecords} s
          order by s.queue
          limit 1
        )
        union all
        select (
          select s.queue
          from ${staleRecords} s
          where s.queue > w.queue
          order by s.queue
          limit 1
        )
        from waiting w
        where w.queue is not null
      )
      select first_due.owner, first_due.due_at
      from waiting w
        cross join lateral (
          select s.kind, s.owner, s.due_at
          from ${staleRecords} s
          where s.queue = w.queue
            and s.due_at <= clock_timestamp()
          order by s.due_at
          limit 1
        ) first_due
      where first_due.kind = ${eventKind[kind]}
    ) each_owner`;

import { sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { parkingCodes } from '../../contract/failures.ts';
import { type PendingEvents, type PendingKind, pendingKinds } from '../../contract/verdict.ts';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { staleRecords } from '../schema/metersync.ts';
import { cut } from './counted.ts';

const stale = alias(staleRecords, 'stale');

/**
 * Counts pending events by kind, up to a bound. Records that are not due wait or are parked. It reads
 * as many of them as make one of the two counts exact, or the other reach the bound.
 */
export async function readPending(
  db: Executor,
  most: number,
): Promise<Readonly<Record<PendingKind, PendingEvents>>> {
  const { rows } = await db.execute<
    PendingEvents & { kind: PendingKind } & Record<string, unknown>
  >(
    sql`
    select
      kinds.kind,
      ${cut(sql`due.events`, most)} as due,
      ${cut(sql`later.waiting`, most)} as waiting,
      ${cut(sql`later.parked`, most)} as parked,
      extract(epoch from clock_timestamp() - due.at)::float8 as "oldestDueSeconds",
      extract(
        epoch from clock_timestamp() - least(due.since, later.since)
      )::float8 as "oldestSeconds"
    from unnest(${array(pendingKinds, 'text')}) as kinds (kind)
      cross join lateral (
        select
          coalesce(sum(first.events), 0) as events,
          min(first.due_at) as at,
          min(first.since) as since
        from (
          select
            ${stale.events},
            ${stale.dueAt},
            ${stale.since}
          from ${staleRecords} ${stale}
          where ${stale.kind} = kinds.kind
            and ${stale.dueAt} <= now()
          order by ${stale.dueAt}
          limit ${most}
        ) first
      ) due
      cross join lateral (
        select
          coalesce(sum(next.events) filter (where not next.parked), 0) as waiting,
          coalesce(sum(next.events) filter (where next.parked), 0) as parked,
          min(next.since) as since
        from (
          select
            ${stale.events},
            ${stale.since},
            coalesce(${stale.errorCode} = any(${array(parkingCodes, 'text')}), false) as parked
          from ${staleRecords} ${stale}
          where ${stale.kind} = kinds.kind
            and ${stale.dueAt} > now()
          order by ${stale.dueAt}
          limit ${2 * most}
        ) next
      ) later`,
  );
  return Object.fromEntries<PendingEvents>(
    rows.map(({ kind, ...events }) => [kind, events]),
  ) as Record<PendingKind, PendingEvents>;
}

import { sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import { parkingCodes } from '../../contract/failures.ts';
import type { PendingEvents } from '../../health/measured.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { staleRecords } from '../schema/metersync.ts';
import { cut } from './counted.ts';

const stale = alias(staleRecords, 'stale');

/** Due records that are read where there are too many to count their events. */
const dueRead = 1_000;

/**
 * Counts pending events by kind. Due records are counted first, using only the index: as many records as the
 * limit have at least as many events. Of the other records only so many are read that either their two states
 * are exact, or one of them is above the limit.
 */
export async function readPending(
  db: Executor,
  most: number,
): Promise<Readonly<Record<RecordEventKind, PendingEvents>>> {
  const { rows } = await db.execute<
    PendingEvents & { kind: RecordEventKind } & Record<string, unknown>
  >(
    sql`
    select
      kinds.kind,
      ${cut(sql`greatest(many.records, due.events)`, most)} as due,
      ${cut(sql`later.waiting`, most)} as waiting,
      ${cut(sql`later.parked`, most)} as parked,
      extract(epoch from clock_timestamp() - due.at)::float8 as "oldestDueSeconds",
      extract(
        epoch from clock_timestamp() - least(due.since, later.since)
      )::float8 as "oldestSeconds"
    from unnest(${array(recordEventKinds, 'text')}) as kinds (kind)
      cross join lateral (
        select count(*) as records
        from (
          select
          from ${staleRecords} ${stale}
          where ${stale.kind} = kinds.kind
            and ${stale.dueAt} <= now()
          order by ${stale.dueAt}
          limit ${most}
        ) counted
      ) many
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
          limit case when many.records < ${most} then ${most}::bigint else ${dueRead} end
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
  ) as Record<RecordEventKind, PendingEvents>;
}

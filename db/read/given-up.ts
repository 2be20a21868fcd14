import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connect.ts';
import { events, journal, settlements } from '../schema/metersync.ts';
import { connections, documents } from '../schema/utility.ts';
import { countOf, type Most } from './counted.ts';
import { eventsOf } from './event-filter.ts';

/** Events that were given up. */
export interface GivenUp {
  /** Those whose record was neither written nor deleted since. */
  readonly dead: number;
  /** Events that became missing within the last day. */
  readonly missingLately: number;
}

export async function countGivenUp(db: Executor, most: Most): Promise<GivenUp> {
  const result = await db.execute<GivenUp & Record<string, unknown>>(sql`
    with gave_up as materialized (
      select distinct kind, record_id
      from (
        (${settled(sql`${settlements.outcome} = 'dead'`, most)}
        )
        union all
        (${settled(
          sql`${settlements.outcome} = 'missing'
            and ${settlements.settledAt} > now() - interval '1 day'`,
          most,
        )}
        )
      ) both_ways
    ), of_those as (${eventsOf(sql`gave_up`)}
    ), given_up as materialized (
      select e.*
      from of_those o
        cross join lateral (
          select
            ${events.outcome},
            ${events.kind},
            ${events.recordId},
            ${events.recordedAt},
            ${events.occurredAt}
          from ${events}
          where ${events.id} = o.id
          offset 0
        ) e
      union all
      (
        select
          ${journal.arrivedAs},
          ${journal.kind},
          ${journal.recordId},
          ${journal.recordedAt},
          ${journal.occurredAt}
        from ${journal}
        where ${journal.arrivedAs} = 'dead'
        order by ${journal.recordedAt} desc
        limit ${most}
      )
    )
    select
      ${countOf(
        sql`from given_up g
          where outcome = 'dead'
            and not ${isWrittenSince('document', documents)}
            and not ${isWrittenSince('connection', connections)}`,
        most,
      )} as dead,
      ${countOf(
        sql`from given_up
          where outcome = 'missing'`,
        most,
      )} as "missingLately"`);
  return result.rows[0] ?? { dead: 0, missingLately: 0 };
}

const settled = (how: SQL, most: Most): SQL => sql`
          select
            ${settlements.kind},
            ${settlements.recordId}
          from ${settlements}
          where ${how}
          limit ${most}`;

/**
 * Whether the record of an event was written or deleted after the event came: then the warehouse
 * has its change.
 */
const isWrittenSince = (
  kind: string,
  table: typeof documents | typeof connections,
): SQL => sql`exists (
              select from ${table} r
              where g.kind = ${kind}
                and r.id = metersync.uuid_of(g.record_id)
                and (
                  r.deleted_at > g.recorded_at
                  or r.synced_at > g.recorded_at
                    and coalesce(r.raw_updated >= g.occurred_at, true)
                )
              offset 0
            )`;

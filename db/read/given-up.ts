import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../connection/connect.ts';
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

/**
 * Counts events that were given up, up to `counted` of each outcome. It looks at `most` settlements
 * and events of each, the last ones.
 */
export async function countGivenUp(db: Executor, most: Most, counted: Most): Promise<GivenUp> {
  const result = await db.execute<GivenUp & Record<string, unknown>>(sql`
    with dead_records as materialized (${recordsOf(sql`${settlements.outcome} = 'dead'`, most)}
    ), missing_records as materialized (${recordsOf(
      sql`${settlements.outcome} = 'missing'
          and ${settlements.settledAt} > now() - interval '1 day'`,
      most,
    )}
    )
    select
      ${countOf(
        sql`from (${settledAs('dead', sql`dead_records`)}
            union all
            ${arrivedDead(most)}
          ) g
          where not ${isWrittenSince('document', documents)}
            and not ${isWrittenSince('connection', connections)}`,
        counted,
      )} as dead,
      ${countOf(
        sql`from (${settledAs('missing', sql`missing_records`)}
          ) g`,
        counted,
      )} as "missingLately"`);
  return result.rows[0] ?? { dead: 0, missingLately: 0 };
}

/** The records of the last settlements of a kind. */
const recordsOf = (which: SQL, most: Most): SQL => sql`
      select distinct
        kind,
        record_id
      from (
        select
          ${settlements.kind},
          ${settlements.recordId}
        from ${settlements}
        where ${which}
        order by ${settlements.settledAt} desc
        limit ${most}
      ) last`;

/** The events of records that are settled with this outcome. */
const settledAs = (outcome: 'dead' | 'missing', records: SQL): SQL => sql`
            select e.*
            from (${eventsOf(records)}
              ) o
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
            where e.outcome = ${outcome}`;

/** The last events that arrived dead. */
const arrivedDead = (most: Most): SQL => sql`(
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
            )`;

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

import { type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { companyResources } from '../../contract/endpoints.ts';
import { parkingCodes } from '../../contract/failures.ts';
import type { ParkedWork } from '../../health/measured.ts';
import { livesCompany, stillParked } from '../catch-up/parking.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { parked, runs, staleRecords } from '../schema/metersync.ts';
import { cut, type Most } from './counted.ts';

const stale = alias(staleRecords, 'stale');
const part = alias(runs, 'part');
const later = alias(runs, 'later');

/**
 * Reads work that the service refused, by failure, longest parked first. Of each failure `most`
 * records and parts are counted.
 */
export async function readParked(db: Executor, most: Most): Promise<ParkedWork[]> {
  const result = await db.execute<ParkedWork & Record<string, unknown>>(sql`
    with refused as (${parkedEvents(most)}
      union all
      select
        ${parked.code},
        ${parked.message},
        0,
        0,
        0,
        ${parked.since},
        ${parked.nextAttemptAt}
      from ${parked}
      where ${stillParked}
      union all${parkedParts(most)}
    )
    select
      code,
      min(reason) as reason,
      ${cut(sql`sum(events)`, most)} as events,
      sum(owners)::int as owners,
      sum(parts)::int as parts,
      min(since)::text as since,
      max(next_attempt_at)::text as "nextAttemptAt"
    from refused
    group by code
    order by min(since)`);
  return result.rows;
}

const codes = array(parkingCodes, 'text');

/**
 * Events that wait for a parking failure. They are added up by owner first: that can be hashed, where
 * a count of distinct owners sorts all.
 */
const parkedEvents = (most: Most): SQL => sql`
      select
        codes.code,
        min(owned.error) as reason,
        sum(owned.events) as events,
        count(*) as owners,
        0 as parts,
        min(owned.since) as since,
        min(owned.due_at) as next_attempt_at
      from unnest(${codes}) as codes (code)
        cross join lateral (
          select
            min(waiting.error) as error,
            sum(waiting.events) as events,
            min(waiting.since) as since,
            min(waiting.due_at) as due_at
          from (
            select
              ${stale.error},
              ${stale.events},
              ${stale.owner},
              ${stale.since},
              ${stale.dueAt}
            from ${staleRecords} ${stale}
            where ${stale.errorCode} = codes.code
            order by ${stale.dueAt}
            limit ${most}
          ) waiting
          group by waiting.owner
        ) owned
      group by codes.code`;

/** Whether another run read the part to any end since. */
const readSince = (isOfPart: SQL): SQL => sql`exists (
          select
          from ${runs} ${later}
          where ${isOfPart}
            and ${later.resource} = failed.resource
            and ${later.finishedAt} > failed.finished_at
          offset 0
        )`;

/**
 * Parts of backfills that failed for a parking failure and that no later run read, among the latest
 * that failed. A tombstoned company's failures need no retry.
 */
const parkedParts = (most: Most): SQL => sql`
      select
        failed.error_code,
        min(failed.error),
        0,
        0,
        count(*),
        min(failed.started_at),
        null
      from (
        select *
        from ${runs} ${part}
        where ${part.resource} is not null
          and ${part.state} in ('failed', 'partial')
        order by ${part.finishedAt} desc
        limit ${most}
      ) failed
      where failed.error_code = any(${codes})
        and case
          when failed.company_id is null
            then failed.resource = 'companies'
              and not ${readSince(sql`${later.companyId} is null`)}
          else failed.resource = any(${array(companyResources, 'text')})
            and ${livesCompany(sql`failed.company_id`)}
            and not ${readSince(sql`${later.companyId} = failed.company_id`)}
        end
      group by failed.error_code`;

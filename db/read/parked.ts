import { type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { companyResources } from '../../contract/endpoints.ts';
import { parkingCodes } from '../../contract/failures.ts';
import type { ParkedWork } from '../../health/measured.ts';
import { livesCompany, stillParked } from '../catch-up/parking.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { parked, runs } from '../schema/metersync.ts';
import { cut } from './counted.ts';
import { eventsThatFailed } from './waiting.ts';

const part = alias(runs, 'part');
const later = alias(runs, 'later');

/**
 * Reads work that the service refused, by failure, longest parked first. Of each failure `most`
 * records and parts are counted.
 */
export async function readParked(db: Executor, most: number): Promise<ParkedWork[]> {
  const result = await db.execute<ParkedWork & Record<string, unknown>>(sql`
    with refused as (${eventsThatFailed(parkingCodes, most)}
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
const parkedParts = (most: number): SQL => sql`
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

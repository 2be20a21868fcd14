import { type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { companyResources } from '../../contract/endpoints.ts';
import { runKinds } from '../../contract/names.ts';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { runs } from '../schema/metersync.ts';
import { companies } from '../schema/utility.ts';

const part = alias(runs, 'part');
const later = alias(runs, 'later');

/**
 * Deletes parts of runs that ended more than `days` ago and that a later run of their kind read
 * completely; returns how many. The last complete part of a listing stays at any age: the next run
 * compares with it. So do the rows of the runs, which sum up their parts.
 */
export async function dropOldParts(
  db: Executor,
  { days, limit }: { days: number; limit: number },
): Promise<number> {
  const result = await db.execute(sql`
    delete from ${runs}
    where ctid = any(array(
      select old.ctid
      from unnest(${array(runKinds, 'text')}) as kinds (kind)
        cross join lateral (
          ${oldParts({
            listings: sql`${companies}
            cross join unnest(${array(companyResources, 'text')}) as listing (resource)`,
            isOf: (run) => sql`${run.companyId} = ${companies.id}
              and ${run.resource} = listing.resource`,
            days,
          })}
          union all
          ${oldParts({
            listings: sql`(values (1)) as one (listing)`,
            isOf: (run) => sql`${run.companyId} is null
              and ${run.resource} = 'companies'`,
            days,
          })}
        ) old
      limit ${limit}
    ))`);
  return result.rowCount ?? 0;
}

/** Selects the old parts of listings; `isOf` says whether a part is one of the listing's. */
const oldParts = ({
  listings,
  isOf,
  days,
}: {
  listings: SQL;
  isOf: (run: typeof part | typeof later) => SQL;
  days: number;
}): SQL => sql`
          select old.ctid
          from ${listings}
            cross join lateral (
              select ${later.finishedAt} as at
              from ${runs} ${later}
              where ${isOf(later)}
                and ${later.kind} = kinds.kind
                and ${later.state} = 'complete'
              order by ${later.finishedAt} desc
              limit 1
            ) complete
            cross join lateral (
              select ${part}.ctid
              from ${runs} ${part}
              where ${isOf(part)}
                and ${part.kind} = kinds.kind
                and ${part.finishedAt} < least(
                  complete.at,
                  now() - make_interval(days => ${days}::int)
                )
              offset 0
            ) old`;

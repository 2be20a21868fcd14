import { type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { companyResources } from '../../contract/endpoints.ts';
import { runKinds } from '../../contract/names.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { pages, runs } from '../schema/metersync.ts';
import { companies } from '../schema/utility.ts';

const run = alias(runs, 'run');
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

/**
 * Deletes pages of manifests whose run is not under way; returns how many. A listing that ends
 * forgets its own; one that is refused, given up or cancelled leaves them.
 */
export async function dropLeftPages(
  db: Executor,
  { limit }: { readonly limit: number },
): Promise<number> {
  const result = await db.execute(sql`
    delete from ${pages}
    where ctid = any(array(
      -- Looks up each run once, however many pages it has.
      with recursive having_pages as (
        (
          select run_id
          from ${pages}
          order by run_id
          limit 1
        )
        union all
        select (
          select run_id
          from ${pages}
          where run_id > before.run_id
          order by run_id
          limit 1
        )
        from having_pages before
        where before.run_id is not null
      )
      select left_over.ctid
      from having_pages
        cross join lateral (
          select ctid
          from ${pages}
          where run_id = having_pages.run_id
          offset 0
        ) left_over
      where not exists (
        select
        from ${runs} ${run}
        where ${run.runId} = having_pages.run_id
          and ${run.companyId} is null
          and ${run.resource} is null
          and ${run.finishedAt} is null
        offset 0
      )
      limit ${limit}
    ))`);
  return result.rowCount ?? 0;
}

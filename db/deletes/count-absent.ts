import { type SQL, sql } from 'drizzle-orm';
import { array, printedUuids } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { prepared } from '../connection/prepared.ts';
import { row, tableOf } from '../resources.ts';
import { alsoListed, deletes } from '../schema/reads.ts';
import { isAbsent, isListed, type Listing, type Seen } from './listing.ts';

interface Counted extends Record<string, unknown> {
  readonly live: number;
  readonly absent: number;
  /** Whether any listing of the kind contains records of another owner. */
  readonly shared: boolean;
}

/**
 * Counts the live rows of a listing, and the rows that meet `among` and are absent from a pass.
 * Also deletes earlier decisions to keep rows that the pass listed, because the service shows them
 * again.
 * It runs for each pass over a company's listing, 4,000 times in a backfill of 1,000 companies.
 * Measured: 0.15 ms and 29 blocks for a listing of 300 records, 0.47 ms and 60 blocks if unchanged.
 */
export async function countAbsent(
  db: Executor,
  listing: Listing,
  seen: Seen,
  among: SQL = sql`true`,
): Promise<Counted> {
  const { rows } = await prepared(db, 'countAbsent').execute<Counted>(sql`
    with shown as (
      delete from ${deletes}
      where ${deletes.state} in ('rejected', 'undone')
        and ${deletes.resource} = ${listing.resource}
        and ${deletes.companyId} is not distinct from ${listing.companyId}::uuid
        and ${deletes.absentSince} < ${seen.beganAt}::timestamptz
        and ${deletes.recordId} = any(${array(printedUuids(seen.ids), 'text')})
    )
    select
      count(*)::int as live,
      count(*) filter (where ${isAbsent(listing, seen)} and ${among})::int as absent,
      (
        select count(*) > 0
        from (
          select
          from ${alsoListed}
          where ${alsoListed.resource} = ${listing.resource}
          order by ${alsoListed.recordId}
          limit 1
        ) other
      ) as shared
    from ${tableOf(listing.resource)} ${row}
    where ${isListed(listing)}`);
  return rows[0] ?? { live: 0, absent: 0, shared: false };
}

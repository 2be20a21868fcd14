import { type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type { Listing } from './absent.ts';
import type { Executor } from './connect.ts';
import { resources, tableOf } from './resources.ts';
import { journal, runs } from './schema/metersync.ts';
import { row } from './tombstone.ts';

const event = alias(journal, 'event');
const part = alias(runs, 'part');

/**
 * Counts rows that a run changed, or found gone, though an event should have told of it. They
 * changed at the service after the last complete run of the listing began, which cannot have seen
 * it. They changed a while before this run began: the event is not just on its way. And no event of
 * the journal tells of that state or a newer one. Of usage data and meters no event tells.
 */
export async function countMissed(
  db: Executor,
  runId: string,
  listing: Listing,
  graceSeconds: number,
): Promise<number> {
  const missed = missedBy(runId, listing, graceSeconds);
  const result = await db.execute<{ missed: number }>(sql`select (${missed})::int as missed`);
  return result.rows[0]?.missed ?? 0;
}

/** The same, as a query of one number. */
export function missedBy(
  runId: string,
  { resource, companyId }: Listing,
  graceSeconds: number,
): SQL {
  if (resources[resource].eventKind === null) return sql`0`;
  const ofListing = sql`${part.companyId} = ${companyId}::uuid and ${part.resource} = ${resource}`;
  return sql`
    select count(*)
    from ${tableOf(resource)} ${row}
      cross join (
        select ${part.startedAt} as at
        from ${runs} ${part}
        where ${part.runId} = ${runId}::uuid
          and ${ofListing}
      ) this
      cross join (
        select max(${part.startedAt}) as at
        from ${runs} ${part}
        where ${part.runId} <> ${runId}::uuid
          and ${ofListing}
          and ${part.state} = 'complete'
      ) before
    where ${row.companyId} = ${companyId}::uuid
      and before.at is not null
      and case
        when ${row.deletedAt} is null
          then ${row.syncedAt} >= this.at
            and ${row.rawUpdated} >= before.at
            and ${row.rawUpdated} < this.at - make_interval(secs => ${graceSeconds})
            and not exists (
              select
              from ${journal} ${event}
              where ${event.recordId} = ${row.id}::text
                and ${event.occurredAt} >= ${row.rawUpdated}
              offset 0
            )
        else ${row.deletedReason} in ('absent', 'listed') and ${row.deletedAt} >= this.at
      end`;
}

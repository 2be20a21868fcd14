import { type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type { CompanyResource } from '../../contract/endpoints.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import type { Listing } from '../deletes/listing.ts';
import { row, usage } from '../deletes/tombstone.ts';
import { type RecordResource, resources, tableOf } from '../resources.ts';
import { journal, runs } from '../schema/metersync.ts';
import { intervals, meters } from '../schema/utility.ts';

const event = alias(journal, 'event');
const part = alias(runs, 'part');

/**
 * Counts rows that a run changed or found gone without the event that should report it. They
 * changed at the service after the last complete run of the listing began, which cannot have read
 * that. They changed at least `graceSeconds` before this run began, so the event is not just under
 * way. And the journal has no event of that state or a newer one.
 */
export async function countMissed(
  db: Executor,
  runId: string,
  listing: Listing,
  graceSeconds: number,
): Promise<number> {
  return await only(db, missedBy(runId, listing, graceSeconds));
}

/** Builds the query that counts missed rows; it returns one number. */
export function missedBy(runId: string, listing: Listing, graceSeconds: number): SQL {
  const { resource } = listing;
  if (resource === 'usageData') return missedUsage(runId, listing, graceSeconds);
  // Meters are counted with their usage, because none of their fields says when they changed.
  return resources[resource].eventKind === null
    ? sql`0`
    : missedRecords(runId, listing, graceSeconds);
}

async function only(db: Executor, missed: SQL): Promise<number> {
  const result = await hot(db, 'countMissed').execute<{ missed: number }>(
    sql`select (${missed})::int as missed`,
  );
  return result.rows[0]?.missed ?? 0;
}

/** When this run began to read the parts of the condition, as `this`. */
const thisRun = (runId: string, which: SQL): SQL => sql`(
        select min(${part.startedAt}) as at
        from ${runs} ${part}
        where ${part.runId} = ${runId}::uuid
          and ${which}
      ) this`;

/** When the last other run that completed these parts began, as `before`. */
const runBefore = (runId: string, which: SQL): SQL => sql`(
        select max(${part.startedAt}) as at
        from ${runs} ${part}
        where ${part.runId} <> ${runId}::uuid
          and ${which}
          and ${part.state} = 'complete'
      ) before`;

const ofCompany = (companyId: string | null): SQL => sql`${part.companyId} = ${companyId}::uuid`;
const ofPart = (companyId: string | null, resource: CompanyResource | RecordResource): SQL =>
  sql`${ofCompany(companyId)} and ${part.resource} = ${resource}`;

function missedRecords(runId: string, { resource, companyId }: Listing, graceSeconds: number): SQL {
  const ofListing = ofPart(companyId, resource);
  return sql`
    select count(*)
    from ${tableOf(resource)} ${row}
      cross join ${thisRun(runId, ofListing)}
      cross join ${runBefore(runId, ofListing)}
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

/**
 * Counts missed usage, read by any part of the run: events of its document report it. Also counts
 * meters that the usage names and the run changed: the same events report new meters, and meters
 * that usage moved to.
 */
function missedUsage(runId: string, { companyId }: Listing, graceSeconds: number): SQL {
  const noEventSince = (moment: SQL): SQL => sql`not exists (
            select
            from ${journal} ${event}
            where ${event.recordId} = ${usage.documentId}::text
              and ${event.recordedAt} >= ${moment}
            offset 0
          )`;
  return sql`
    select count(*) + count(distinct changed.id)
    from ${tableOf('usageData')} ${usage}
      cross join ${thisRun(runId, ofCompany(companyId))}
      cross join ${runBefore(runId, ofPart(companyId, 'usageData'))}
      left join lateral (
        select ${meters.id}
        from ${meters}
        where ${meters.id} = ${usage.meterId}
          and ${meters.syncedAt} >= this.at
        offset 0
      ) changed on true
    where ${usage.companyId} = ${companyId}::uuid
      and ${usage.documentId} is not null
      and before.at is not null
      and case
        when ${usage.deletedAt} is null
          then ${usage.syncedAt} >= this.at
            and ${usage.updated} >= before.at
            and ${usage.updated} < this.at - make_interval(secs => ${graceSeconds})
            and ${noEventSince(sql`${usage.updated}`)}
        else ${usage.deletedReason} = 'absent'
          and ${usage.deletedAt} >= this.at
          and ${noEventSince(sql`before.at`)}
      end`;
}

/** Counts missed readings of a meter, among those with `updated`. */
export async function countMissedReadings(
  db: Executor,
  runId: string,
  { companyId, meterId }: { readonly companyId: string; readonly meterId: string },
  graceSeconds: number,
): Promise<number> {
  const ofIntervals = ofPart(companyId, 'intervals');
  const missed = sql`
    select count(*)
    from ${intervals}
      cross join ${thisRun(runId, ofIntervals)}
      cross join ${runBefore(runId, ofIntervals)}
    where ${intervals.meterId} = ${meterId}
      and before.at is not null
      and ${intervals.syncedAt} >= this.at
      and ${intervals.updated} >= before.at
      and ${intervals.updated} < this.at - make_interval(secs => ${graceSeconds})
      and not exists (
        select
        from ${journal} ${event}
        where ${event.recordId} = ${intervals.meterId}
          and ${event.recordedAt} >= ${intervals.updated}
          and ${intervals.startAt} between ${event.rangeStart} and ${event.rangeEnd}
        offset 0
      )`;
  return await only(db, missed);
}

import { and, eq, isNull, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { type FailureCode, parkingCodes } from '../../contract/failures.ts';
import { companyResources, type RunKind } from '../../contract/names.ts';
import type { WarehouseHealth } from '../../contract/verdict.ts';
import { array } from '../arrays.ts';
import { stillParked } from '../catch-up/parking.ts';
import type { Executor } from '../connect.ts';
import {
  deletes,
  events,
  journal,
  parked,
  rejectedRecords,
  runs,
  settlements,
  staleRecords,
} from '../schema/metersync.ts';
import { companies, connections, documents } from '../schema/utility.ts';
import { eventsOf } from './event-filter.ts';
import { readNarrowViews } from './narrow-views.ts';
import { readSilence } from './silence.ts';
import { readRuns } from './status.ts';

/**
 * Reads the warehouse's health with index lookups: the cost grows with problems and companies, not
 * with the journal.
 */
export async function readHealth(
  db: Executor,
  { silenceHours = 0 } = {},
): Promise<WarehouseHealth> {
  return {
    ...(await readCounts(db)),
    parked: await readParkedCodes(db),
    runs: { full: await readRuns(db, 'full'), reconcile: await readRuns(db, 'reconcile') },
    loaded: await isLoaded(db),
    blockedViews: (await readNarrowViews(db)).length,
    silence: await readSilence(db, silenceHours),
    silenceHours,
  };
}

type Counts = Pick<
  WarehouseHealth,
  'oldestDueSeconds' | 'dead' | 'missingLately' | 'undecidedDeletes' | 'rejectedRecords'
>;

const stale = alias(staleRecords, 'stale');
const part = alias(runs, 'part');

async function readCounts(db: Executor): Promise<Counts> {
  const result = await db.execute<Counts & Record<string, unknown>>(sql`
    with gave_up as materialized (
      select distinct
        ${settlements.kind},
        ${settlements.recordId}
      from ${settlements}
      where ${settlements.outcome} = 'dead'
        or ${settlements.outcome} = 'missing'
          and ${settlements.settledAt} > clock_timestamp() - interval '1 day'
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
      select
        ${journal.arrivedAs},
        ${journal.kind},
        ${journal.recordId},
        ${journal.recordedAt},
        ${journal.occurredAt}
      from ${journal}
      where ${journal.arrivedAs} = 'dead'
    ), due as (
      select min(first.due_at) as at
      from unnest(array['connection', 'document', 'interval']) as kinds (kind)
        cross join lateral (
          select ${stale.dueAt}
          from ${staleRecords} ${stale}
          where ${stale.kind} = kinds.kind
          order by ${stale.dueAt}
          limit 1
        ) first
    )
    select
      (
        select extract(epoch from clock_timestamp() - at)::float8
        from due
        where at <= clock_timestamp()
      ) as "oldestDueSeconds",
      (
        select count(*)::int
        from given_up g
        where outcome = 'dead'
          and not ${isWrittenSince('document', documents)}
          and not ${isWrittenSince('connection', connections)}
      ) as dead,
      (select count(*)::int from given_up where outcome = 'missing') as "missingLately",
      (
        select count(*)::int
        from ${deletes}
        where ${deletes.state} = 'quarantined'
      ) as "undecidedDeletes",
      (
        select count(*)::int
        from ${rejectedRecords}
      ) as "rejectedRecords"`);
  const [counts] = result.rows;
  if (counts === undefined) throw new Error('a count without a row');
  return counts;
}

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

/**
 * Counts work that the service refused: waiting events, and the last part of each company's
 * resource if that failed.
 */
async function readParkedCodes(db: Executor): Promise<WarehouseHealth['parked']> {
  const result = await db.execute<{ code: FailureCode; events: number; parts: number }>(sql`
    with refused as (
      select
        ${stale.errorCode} as code,
        ${stale.events},
        0 as parts
      from ${staleRecords} ${stale}
      where ${stale.errorCode} = any(${codes})
      union all
      select
        ${parked.code},
        0,
        0
      from ${parked}
      where ${stillParked}
      union all${partsOfCompanies}
      union all${listOfCompanies}
    )
    select
      code,
      sum(events)::int as events,
      sum(parts)::int as parts
    from refused
    group by code
    order by code`);
  return result.rows;
}

const codes = array(parkingCodes, 'text');

/** The last part of a listing that ended, as a table `last (state, error_code)`. */
const lastEnded = (ofListing: SQL): SQL => sql`(
          select
            ${part.state},
            ${part.errorCode}
          from ${runs} ${part}
          where ${ofListing}
            and ${part.finishedAt} is not null
          order by ${part.finishedAt} desc
          limit 1
        ) last`;

/** Refused parts of live companies. */
const partsOfCompanies = sql`
      select
        last.error_code,
        0,
        1
      from ${companies}
        cross join unnest(${array(companyResources, 'text')}) as listing (resource)
        cross join lateral ${lastEnded(
          sql`${part.companyId} = ${companies.id}
            and ${part.resource} = listing.resource`,
        )}
      where ${companies.deletedAt} is null
        and last.state in ('failed', 'partial')
        and last.error_code = any(${codes})`;

/** The list of companies, if it was refused. */
const listOfCompanies = sql`
      select
        last.error_code,
        0,
        1
      from ${lastEnded(
        sql`${part.companyId} is null
            and ${part.resource} = 'companies'`,
      )}
      where last.state in ('failed', 'partial')
        and last.error_code = any(${codes})`;

/** Whether any full run ever ended with data. */
async function isLoaded(db: Executor): Promise<boolean> {
  const full: RunKind = 'full';
  const ended = await db
    .select({ runId: runs.runId })
    .from(runs)
    .where(
      and(
        isNull(runs.companyId),
        isNull(runs.resource),
        eq(runs.kind, full),
        sql`${runs.state} in ('complete', 'partial', 'suspect')`,
      ),
    )
    .limit(1);
  return ended.length > 0;
}

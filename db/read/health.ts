import { sql } from 'drizzle-orm';
import { type FailureCode, parkingCodes } from '../../contract/failures.ts';
import type { RunKind } from '../../contract/names.ts';
import { companyResources } from '../../contract/names.ts';
import type { WarehouseHealth } from '../../contract/verdict.ts';
import { array } from '../arrays.ts';
import type { Executor } from '../connect.ts';
import { eventsOf } from './events.ts';
import { readNarrowViews } from './narrow-views.ts';
import { readSilence } from './silence.ts';
import { readRuns } from './status.ts';

/**
 * What the warehouse tells of its own health, in reads that an index answers: they cost what is
 * wrong and the number of companies, not the length of the journal.
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

async function readCounts(db: Executor): Promise<Counts> {
  const result = await db.execute<Counts & Record<string, unknown>>(sql`
    with gave_up as materialized (
      select distinct kind, record_id
      from metersync.settlements
      where outcome = 'dead'
        or (outcome = 'missing' and settled_at > clock_timestamp() - interval '1 day')
    ), of_those as (${eventsOf(sql`gave_up`)}
    ), given_up as materialized (
      select e.outcome
      from of_those o
      cross join lateral (
        select outcome from metersync.events where id = o.id offset 0
      ) e
    ), due as (
      select min(first.due_at) as at
      from unnest(array['connection', 'document', 'interval']) as kinds (kind)
      cross join lateral (
        select due_at
        from metersync.stale_records
        where kind = kinds.kind
        order by due_at
        limit 1
      ) first
    )
    select
      (
        select extract(epoch from clock_timestamp() - at)::float8
        from due
        where at <= clock_timestamp()
      ) as "oldestDueSeconds",
      (select count(*)::int from metersync.journal where arrived_as = 'dead')
        + (select count(*)::int from given_up where outcome = 'dead') as dead,
      (select count(*)::int from given_up where outcome = 'missing') as "missingLately",
      (
        select count(*)::int from metersync.deletes where state = 'quarantined'
      ) as "undecidedDeletes",
      (select count(*)::int from metersync.rejected_records) as "rejectedRecords"`);
  const [counts] = result.rows;
  if (counts === undefined) throw new Error('a count without a row');
  return counts;
}

/**
 * Work that the service refused: what waits for it, and the last part of each company's resource
 * that failed for it.
 */
async function readParkedCodes(db: Executor): Promise<WarehouseHealth['parked']> {
  const codes = array(parkingCodes, 'text');
  const result = await db.execute<{ code: FailureCode; events: number; parts: number }>(sql`
    with told as (
      select error_code as code, events, 0 as parts
      from metersync.stale_records
      where error_code = any(${codes})
      union all
      select code, 0, 0
      from metersync.parked
      union all
      select last.error_code, 0, 1
      from utility.companies c
      cross join unnest(${array(companyResources, 'text')}) as listing (resource)
      cross join lateral (
        select state, error_code
        from metersync.runs
        where company_id = c.id and resource = listing.resource and finished_at is not null
        order by finished_at desc
        limit 1
      ) last
      where c.deleted_at is null
        and last.state in ('failed', 'partial')
        and last.error_code = any(${codes})
      union all
      select last.error_code, 0, 1
      from (
        select state, error_code
        from metersync.runs
        where company_id is null and resource = 'companies' and finished_at is not null
        order by finished_at desc
        limit 1
      ) last
      where last.state in ('failed', 'partial') and last.error_code = any(${codes})
    )
    select code, sum(events)::int as events, sum(parts)::int as parts
    from told
    group by code
    order by code`);
  return result.rows;
}

/** Whether a run ever ended that brought something. */
async function isLoaded(db: Executor): Promise<boolean> {
  const full: RunKind = 'full';
  const result = await db.execute(sql`
    select
    from metersync.runs
    where company_id is null
      and resource is null
      and kind = ${full}
      and state in ('complete', 'partial', 'suspect')
    limit 1`);
  return (result.rowCount ?? 0) > 0;
}

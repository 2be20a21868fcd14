import { sql } from 'drizzle-orm';
import { type CompanyResource, companyResources, type RunState } from '../../contract/names.ts';
import type { Executor } from '../connect.ts';

/** A company that a run is reading now. */
export interface CompanyProgress {
  readonly name: string;
  /** What of it is read now, the how-manieth of `companyResources`, from 1. */
  readonly resource: CompanyResource;
  readonly step: number;
  /**
   * Of `unit`, so many are read of so many; of how many is not known before the first page. The
   * meter that is being read counts by the part of its readings that are written.
   */
  readonly done: number;
  readonly of: number | null;
  readonly unit: 'records' | 'meters';
  /** Rows of all of it so far. */
  readonly rows: number;
  /** Since the resource began, and since the company did. */
  readonly seconds: number;
  readonly companySeconds: number;
}

/** A part of a run that did not end well. */
export interface FailedPart {
  readonly name: string | null;
  readonly resource: string;
  readonly state: RunState;
  readonly error: string | null;
}

/** How far a run is, from its rows in `metersync.runs` and from what its listings showed so far. */
export interface RunProgress {
  /** Null before the run has begun. */
  readonly state: RunState | null;
  readonly error: string | null;
  /** Seconds since it began, to its end when it has ended. */
  readonly seconds: number;
  /** Companies that are known: those of a run of all of them. */
  readonly companies: number;
  readonly companiesDone: number;
  readonly rows: number;
  /** Longest at it first. */
  readonly running: readonly CompanyProgress[];
  /** The last first. */
  readonly failed: readonly FailedPart[];
}

const failedMax = 5;

/**
 * Reads how far a run is. Meters count as read once their readings were, whoever read them since
 * the run came to them.
 */
export async function readRunProgress(db: Executor, runId: string): Promise<RunProgress> {
  const run = sql`run_id = ${runId}::uuid`;
  const whole = await db.execute<
    Omit<RunProgress, 'running' | 'failed'> & Record<string, unknown>
  >(sql`
    with r as (select state, error, started_at, finished_at from metersync.runs
      where ${run} and company_id is null and resource is null),
    parts as (
      select count(*) filter (where resource = 'intervals' and state <> 'running') as done,
        sum(rows_inserted + rows_changed + rows_unchanged) as rows
      from metersync.runs where ${run} and resource is not null
    )
    select (select state from r) as state, (select error from r) as error,
      coalesce((select extract(epoch from coalesce(finished_at, clock_timestamp()) - started_at) from r), 0)::float8
        as seconds,
      (select count(*)::int from utility.companies where deleted_at is null) as companies,
      parts.done::int as "companiesDone",
      (coalesce(parts.rows, 0) + coalesce((select sum(cardinality(ids)) from metersync.pages where ${run} and pass = 1), 0))::float8
        as rows
    from parts`);
  const failed = await db.execute<FailedPart & Record<string, unknown>>(sql`
    select coalesce(c.name, company_id::text) as name, resource, state, error
    from metersync.runs left join utility.companies c on c.id = company_id
    where ${run} and resource is not null and state not in ('running', 'complete')
    order by finished_at desc limit ${failedMax}`);
  return {
    ...(whole.rows[0] as Omit<RunProgress, 'running' | 'failed'>),
    running: await readRunning(db, runId),
    failed: failed.rows,
  };
}

async function readRunning(db: Executor, runId: string): Promise<CompanyProgress[]> {
  const result = await db.execute<Omit<CompanyProgress, 'step'> & Record<string, unknown>>(sql`
    with part as (
      select company_id, resource, started_at, least(1, distinct_ids::float8 / nullif(total_said, 0)) as of_meter
      from metersync.runs where run_id = ${runId}::uuid and company_id is not null and state = 'running'
    ), listed as (
      select distinct on (company_id, resource) company_id, resource, sum(cardinality(ids)) as done, max(total) as total,
        min(read_at) as began
      from metersync.pages where run_id = ${runId}::uuid
      group by company_id, resource, pass order by company_id, resource, pass desc
    ), so_far as (
      select company_id, min(started_at) as began, sum(rows_inserted + rows_changed + rows_unchanged) as rows
      from metersync.runs where run_id = ${runId}::uuid and company_id is not null group by company_id
    )
    select coalesce(c.name, p.company_id::text) as name, p.resource,
      case when p.resource = 'intervals' then 'meters' else 'records' end as unit,
      coalesce(case when p.resource = 'intervals' then least(m.done + coalesce(p.of_meter, 0), m.total) else l.done end, 0)::float8 as done,
      (case when p.resource = 'intervals' then m.total else l.total end)::float8 as of,
      (s.rows + coalesce(l.done, 0))::float8 as rows,
      extract(epoch from clock_timestamp() - coalesce(l.began, p.started_at))::float8 as seconds,
      extract(epoch from clock_timestamp() - s.began)::float8 as "companySeconds"
    from part p
    join so_far s on s.company_id = p.company_id
    left join utility.companies c on c.id = p.company_id
    left join listed l on l.company_id = p.company_id and l.resource = p.resource
    left join lateral (
      select count(*) as total, count(*) filter (where f.updated_at >= p.started_at) as done
      from utility.meters m left join metersync.interval_fetches f on f.meter_id = m.id
      where p.resource = 'intervals' and m.company_id = p.company_id and m.deleted_at is null
    ) m on true
    order by s.began, p.company_id`);
  return result.rows.map((row) => ({ ...row, step: companyResources.indexOf(row.resource) + 1 }));
}

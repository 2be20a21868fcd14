import { and, desc, eq, isNotNull, notInArray, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { type CompanyResource, companyResources } from '../../contract/endpoints.ts';
import type { RunState } from '../../contract/names.ts';
import type { Executor } from '../connection/connect.ts';
import { intervalFetches, pages, runCompanies, runs } from '../schema/metersync.ts';
import { companies, meters } from '../schema/utility.ts';

/** A company that a run is reading. */
export interface CompanyProgress {
  readonly name: string;
  /** The resource being read, and its place among `companyResources`, from 1. */
  readonly resource: CompanyResource;
  readonly step: number;
  /**
   * How many of `unit` are read, of how many; the latter is unknown before the first page. The
   * meter being read counts by the written part of its readings.
   */
  readonly done: number;
  readonly of: number | null;
  readonly unit: 'records' | 'meters';
  /** Rows of the company so far, of all resources. */
  readonly rows: number;
  /** Seconds since the resource began, and since the company did. */
  readonly seconds: number;
  readonly companySeconds: number;
}

/** A part of a run that ended, and not as complete. */
export type FailedPart = Awaited<ReturnType<typeof readFailed>>[number];

/** The progress of a run, from its rows in `metersync.runs` and the pages of its listings. */
export interface RunProgress {
  /** Null before the run has begun. */
  readonly state: RunState | null;
  readonly error: string | null;
  /** Null before the run has begun. */
  readonly workflowId: string | null;
  /** Seconds from its begin to its end, or to now. */
  readonly seconds: number;
  /** Companies that it reads: those chosen for it that the service has, else all live ones. */
  readonly companies: number;
  /** Null for an ended run that has lost parts to `RETENTION_DAYS`. */
  readonly companiesDone: number | null;
  readonly rows: number;
  /** The longest running first. */
  readonly running: readonly CompanyProgress[];
  /** The latest first. */
  readonly failed: readonly FailedPart[];
}

/** Parts of a run that are read when some of them failed. */
const failedMax = 100;

const part = alias(runs, 'part');
const page = alias(pages, 'page');

const isPart = (runId: string): SQL => sql`${part.runId} = ${runId}::uuid`;

/**
 * Reads the progress of a run. A meter counts as read once any run has read its readings since this
 * run came to them.
 */
export async function readRunProgress(db: Executor, runId: string): Promise<RunProgress> {
  return {
    ...(await readSummary(db, runId)),
    running: await readRunning(db, runId),
    failed: await readFailed(db, runId),
  };
}

type Summary = Omit<RunProgress, 'running' | 'failed'>;

/** Rows that a part wrote or found unchanged. */
const rowsOfPart = sql`${part.rowsInserted} + ${part.rowsChanged} + ${part.rowsUnchanged}`;

async function readSummary(db: Executor, runId: string): Promise<Summary> {
  const result = await db.execute<Summary & Record<string, unknown>>(sql`
    with run as (
      select
        ${part.state},
        ${part.error},
        ${part.workflowId},
        case when ${part.finishedAt} is not null then ${rowsOfPart} end as rows,
        case when ${part.finishedAt} is not null then ${part.requests} end as requests,
        extract(epoch from coalesce(${part.finishedAt}, clock_timestamp()) - ${part.startedAt})
          as seconds
      from ${runs} ${part}
      where ${isPart(runId)}
        and ${part.companyId} is null
        and ${part.resource} is null
    ), parts as (
      select
        count(*) filter (
          where ${part.resource} = 'intervals' and ${part.state} <> 'running'
        ) as done,
        sum(${rowsOfPart}) as rows,
        coalesce(sum(${part.requests}), 0) as requests
      from ${runs} ${part}
      where ${isPart(runId)}
        and ${part.resource} is not null
    ), listed as (
      select sum(cardinality(${page.ids})) as rows
      from ${pages} ${page}
      where ${page.runId} = ${runId}::uuid
        and ${page.pass} = 1
    ), chosen as (
      select
        count(*)::int as companies,
        count(*) filter (where ${runCompanies.refused})::int as refused
      from ${runCompanies}
      where ${runCompanies.runId} = ${runId}::uuid
    )
    select
      (select state from run) as state,
      (select error from run) as error,
      (select workflow_id from run) as "workflowId",
      coalesce((select seconds from run), 0)::float8 as seconds,
      case
        when chosen.companies > 0 then chosen.companies - chosen.refused
        else (
          select count(*)::int
          from ${companies}
          where ${companies.deletedAt} is null
        )
      end as companies,
      case
        when parts.requests >= coalesce((select requests from run), 0) then parts.done::int
      end as "companiesDone",
      coalesce(
        (select rows from run),
        coalesce(parts.rows, 0) + coalesce((select rows from listed), 0)
      )::float8 as rows
    from parts
      cross join chosen`);
  return result.rows[0] as Summary;
}

async function readFailed(db: Executor, runId: string) {
  const { companyId, resource, state, error, finishedAt } = runs;
  return await db
    .select({
      name: sql<string | null>`coalesce(${companies.name}, ${companyId}::text)`,
      resource: sql<string>`${resource}`,
      state,
      error,
    })
    .from(runs)
    .leftJoin(companies, eq(companies.id, companyId))
    .where(
      and(eq(runs.runId, runId), isNotNull(resource), notInArray(state, ['running', 'complete'])),
    )
    .orderBy(desc(finishedAt))
    .limit(failedMax);
}

async function readRunning(db: Executor, runId: string): Promise<CompanyProgress[]> {
  const isOfIntervals = sql`running.resource = 'intervals'`;
  const result = await db.execute<Omit<CompanyProgress, 'step'> & Record<string, unknown>>(sql`
    with ${partsOf(runId)}
    select
      coalesce(${companies.name}, running.company_id::text) as name,
      running.resource,
      case when ${isOfIntervals} then 'meters' else 'records' end as unit,
      coalesce(
        case
          when ${isOfIntervals} then least(read.done + coalesce(running.of_meter, 0), read.total)
          else listed.done
        end,
        0
      )::float8 as done,
      (case when ${isOfIntervals} then read.total else listed.total end)::float8 as of,
      (so_far.rows + coalesce(listed.done, 0))::float8 as rows,
      extract(
        epoch from clock_timestamp() - coalesce(listed.began, running.started_at)
      )::float8 as seconds,
      extract(epoch from clock_timestamp() - so_far.began)::float8 as "companySeconds"
    from running
      join so_far on so_far.company_id = running.company_id
      left join ${companies} on ${companies.id} = running.company_id
      left join listed
        on listed.company_id = running.company_id
        and listed.resource = running.resource
      left join lateral (
        select
          count(*) as total,
          count(*) filter (where ${intervalFetches.updatedAt} >= running.started_at) as done
        from ${meters}
          left join ${intervalFetches} on ${intervalFetches.meterId} = ${meters.id}
        where ${isOfIntervals}
          and ${meters.companyId} = running.company_id
          and ${meters.deletedAt} is null
      ) read on true
    order by so_far.began, running.company_id`);
  return result.rows.map((row) => ({ ...row, step: companyResources.indexOf(row.resource) + 1 }));
}

/**
 * Steps of a statement for the companies of a run. `running` are the parts under way. `listed` is
 * what the latest pass of each listed. `so_far` is what all parts of a company wrote.
 */
const partsOf = (runId: string): SQL => sql`running as (
      select
        ${part.companyId},
        ${part.resource},
        ${part.startedAt},
        least(1, ${part.distinctIds}::float8 / nullif(${part.reportedTotal}, 0)) as of_meter
      from ${runs} ${part}
      where ${isPart(runId)}
        and ${part.companyId} is not null
        and ${part.state} = 'running'
    ), listed as (
      select distinct on (${page.companyId}, ${page.resource})
        ${page.companyId},
        ${page.resource},
        sum(cardinality(${page.ids})) as done,
        max(${page.total}) as total,
        min(${page.readAt}) as began
      from ${pages} ${page}
      where ${page.runId} = ${runId}::uuid
      group by ${page.companyId}, ${page.resource}, ${page.pass}
      order by ${page.companyId}, ${page.resource}, ${page.pass} desc
    ), so_far as (
      select
        ${part.companyId},
        min(${part.startedAt}) as began,
        sum(${rowsOfPart}) as rows
      from ${runs} ${part}
      where ${isPart(runId)}
        and ${part.companyId} is not null
      group by ${part.companyId}
    )`;

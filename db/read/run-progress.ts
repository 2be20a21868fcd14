import { and, desc, eq, isNotNull, isNull, notInArray, sql } from 'drizzle-orm';
import { type CompanyResource, companyResources } from '../../contract/endpoints.ts';
import type { RunKind, RunState } from '../../contract/names.ts';
import { isWhole } from '../backfill/runs.ts';
import type { Executor } from '../connection/connect.ts';
import { intervalFetches, pages, runCompanies, runs } from '../schema/metersync.ts';
import { companies, meters } from '../schema/utility.ts';

/** A company that a run is reading. */
export type CompanyProgress = Awaited<ReturnType<typeof readRunning>>[number];

/** A part of a run that ended in another state than complete. */
export type FailedPart = Awaited<ReturnType<typeof readFailed>>[number];

/** The progress of a run, from its rows in `metersync.runs` and the pages of its listings. */
export type RunProgress = Awaited<ReturnType<typeof readRunProgress>>;

/**
 * Reads the progress of a run. A meter counts as read if any run has read its readings since this
 * run began with the readings of its company.
 */
export async function readRunProgress(db: Executor, runId: string) {
  return {
    ...(await readSummary(db, runId)),
    /** The longest running first. */
    running: await readRunning(db, runId),
    /** The latest first. */
    failed: await readFailed(db, runId),
  };
}

/** Rows that a part wrote or found unchanged. */
const rowsOfPart = sql`${runs.rowsInserted} + ${runs.rowsChanged} + ${runs.rowsUnchanged}`;

async function readSummary(db: Executor, runId: string) {
  const { kind, companyId, state, error, workflowId, startedAt, finishedAt } = runs;
  const { resource, requests } = runs;
  const run = db
    .select({
      kind,
      state,
      error,
      workflowId,
      ended: finishedAt,
      rows: sql`${rowsOfPart}`.as('run_rows'),
      requests: sql`${requests}`.as('run_requests'),
      seconds:
        sql<number>`extract(epoch from coalesce(${finishedAt}, clock_timestamp()) - ${startedAt})::float8`.as(
          'seconds',
        ),
    })
    .from(runs)
    .where(and(eq(runs.runId, runId), isWhole(runs)))
    .as('run');
  const parts = db
    .select({
      // A backfill ends with the readings of a company. The parts of a reconcile have no last one.
      done: sql`count(*) filter (where ${resource} = 'intervals' and ${state} <> 'running')
        + count(distinct ${companyId}) filter (where ${kind} = 'reconcile')
        - count(distinct ${companyId})
            filter (where ${kind} = 'reconcile' and ${state} = 'running')`.as('done'),
      rows: sql`coalesce(sum(${rowsOfPart}), 0)`.as('part_rows'),
      requests: sql`coalesce(sum(${requests}), 0)`.as('part_requests'),
    })
    .from(runs)
    .where(and(eq(runs.runId, runId), isNotNull(resource)))
    .as('parts');
  const listed = db
    .select({ rows: sql`coalesce(sum(cardinality(${pages.ids})), 0)`.as('listed_rows') })
    .from(pages)
    .where(and(eq(pages.runId, runId), eq(pages.pass, 1)))
    .as('listed');
  const chosen = db
    .select({
      companies: sql`count(*)`.as('chosen'),
      taken: sql`count(*) filter (where not ${runCompanies.refused})`.as('taken'),
    })
    .from(runCompanies)
    .where(eq(runCompanies.runId, runId))
    .as('chosen');
  const live = db.$count(companies, isNull(companies.deletedAt));
  const [summary] = await db
    .select({
      /** Null before the run has begun, like the state and the workflow. */
      kind: sql<RunKind | null>`${run.kind}`,
      state: sql<RunState | null>`${run.state}`,
      error: sql<string | null>`${run.error}`,
      workflowId: sql<string | null>`${run.workflowId}`,
      /** Seconds from its start to its end, or to now. */
      seconds: sql<number>`coalesce(${run.seconds}, 0)`,
      /** Number of companies: chosen companies that the service has, or all live companies. */
      companies: sql<number>`(
        case when ${chosen.companies} > 0 then ${chosen.taken} else ${live} end
      )::int`,
      /** Null for an ended run that has lost parts to `RETENTION_DAYS`. */
      companiesDone: sql<number | null>`case
        when ${run.ended} is null or ${parts.requests} >= ${run.requests} then ${parts.done}::int
      end`,
      rows: sql<number>`(case
        when ${run.ended} is null then ${parts.rows} + ${listed.rows} else ${run.rows}
      end)::float8`,
    })
    .from(parts)
    .crossJoin(listed)
    .crossJoin(chosen)
    .leftJoin(run, sql`true`);
  if (summary === undefined) throw new Error(`nothing was read of run ${runId}`);
  return summary;
}

/** Maximum number of failed parts of a run that are listed. */
const failedMax = 100;

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

async function readRunning(db: Executor, runId: string) {
  const { companyId, resource, startedAt, distinctIds, reportedTotal, state } = runs;
  const isOfIntervals = eq(resource, 'intervals');
  /** The number of records that the latest pass listed. */
  const listed = db
    .select({
      done: sql`sum(cardinality(${pages.ids}))`.as('listed_done'),
      total: sql`max(${pages.total})`.as('listed_total'),
    })
    .from(pages)
    .where(
      and(eq(pages.runId, runId), eq(pages.companyId, companyId), eq(pages.resource, resource)),
    )
    .groupBy(pages.pass)
    .orderBy(desc(pages.pass))
    .limit(1)
    .as('listed');
  const read = db
    .select({
      done: sql`count(*) filter (where ${intervalFetches.updatedAt} >= ${startedAt})`.as(
        'read_done',
      ),
      total: sql`count(*)`.as('read_total'),
    })
    .from(meters)
    .leftJoin(intervalFetches, eq(intervalFetches.meterId, meters.id))
    .where(and(isOfIntervals, eq(meters.companyId, companyId), isNull(meters.deletedAt)))
    .as('read');
  const ofMeter = sql`coalesce(least(1, ${distinctIds}::float8 / nullif(${reportedTotal}, 0)), 0)`;
  const rows = await db
    .select({
      name: sql<string>`coalesce(${companies.name}, ${companyId}::text)`,
      resource: sql<CompanyResource>`${resource}`,
      unit: sql<'records' | 'meters'>`case when ${isOfIntervals} then 'meters' else 'records' end`,
      /** How many of `unit` are read; a meter under way counts as the fraction that is written. */
      done: sql<number>`coalesce(
        case
          when ${isOfIntervals} then least(${read.done} + ${ofMeter}, ${read.total})
          else ${listed.done}
        end,
        0
      )::float8`,
      /** How many there are in all; unknown before the first page. */
      of: sql<number | null>`(
        case when ${isOfIntervals} then ${read.total} else ${listed.total} end
      )::float8`,
    })
    .from(runs)
    .leftJoin(companies, eq(companies.id, companyId))
    .leftJoinLateral(listed, sql`true`)
    .leftJoinLateral(read, sql`true`)
    .where(and(eq(runs.runId, runId), isNotNull(companyId), eq(state, 'running')))
    .orderBy(startedAt, companyId);
  /** The place of the resource among `companyResources`, from 1. */
  return rows.map((row) => ({ ...row, step: companyResources.indexOf(row.resource) + 1 }));
}

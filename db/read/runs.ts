import { and, count, desc, eq, isNotNull, isNull, type SQL, sql } from 'drizzle-orm';
import { type CompanyResource, companyResources } from '../../contract/endpoints.ts';
import { type RunKind, type RunState, runStates } from '../../contract/names.ts';
import { onlyUntilDecided } from '../../contract/words.ts';
import type { KindOfRuns, RunUnderWay } from '../../health/measured.ts';
import { isWhole } from '../backfill/runs.ts';
import { isBeyond } from '../connection/arrays.ts';
import type { Executor, Row } from '../connection/connect.ts';
import { intervalFetches, noCompany, pages, runCompanies, runs } from '../schema/reads.ts';
import { companies, meters } from '../schema/utility.ts';

/** A run; its counts are sums over its parts, and 0 while it runs. */
export type ListedRun = typeof runs.$inferSelect;

/** Lists runs that have not ended, the latest first. */
export async function listRunning(db: Executor): Promise<ListedRun[]> {
  return await db
    .select()
    .from(runs)
    .where(and(isWhole(runs), isNull(runs.finishedAt)))
    .orderBy(desc(runs.startedAt))
    .limit(100);
}

/** Lists runs that ended, the latest first. `before` is the last run of the previous page. */
export async function listEnded(
  db: Executor,
  page: {
    readonly limit: number;
    readonly before?: { readonly finishedAt: string; readonly runId: string } | undefined;
  },
): Promise<ListedRun[]> {
  const last = page.before && [page.before.finishedAt, page.before.runId];
  const { finishedAt, runId } = runs;
  return await db
    .select()
    .from(runs)
    .where(
      and(isWhole(runs), isNotNull(finishedAt), isBeyond([finishedAt, runId], 'descending', last)),
    )
    .orderBy(desc(finishedAt), desc(runId))
    .limit(page.limit);
}

export async function readRun(db: Executor, runId: string): Promise<ListedRun | undefined> {
  const [run] = await db
    .select()
    .from(runs)
    .where(and(eq(runs.runId, runId), isWhole(runs)));
  return run;
}

/** The progress of a run, from its rows in `metersync.runs` and the pages of its listings. */
export interface RunProgress extends RunSummary {
  /** The longest running first. */
  readonly running: readonly CompanyProgress[];
  /** The latest first. */
  readonly failed: readonly FailedPart[];
}

/**
 * Reads the progress of a run. A meter counts as read if any run has read its readings since this
 * run began with the readings of its company.
 */
export async function readRunProgress(db: Executor, runId: string): Promise<RunProgress> {
  const summary = await readSummary(db, runId);
  const running = await readRunning(db, runId);
  return { ...summary, running, failed: await readFailed(db, runId) };
}

type RunSummary = {
  /** Null before the run has begun, like the state and the workflow. */
  readonly kind: RunKind | null;
  readonly state: RunState | null;
  readonly error: string | null;
  readonly workflowId: string | null;
  /** Seconds from its start to its end, or to now. */
  readonly seconds: number;
  /** Number of companies: chosen companies that the service has, or all live companies. */
  readonly companies: number;
  /** Null for an ended run that has lost parts to `RETENTION_DAYS`. */
  readonly companiesDone: number | null;
  /** Rows that it wrote or found unchanged. */
  readonly rows: number;
};

async function readSummary(db: Executor, runId: string): Promise<RunSummary> {
  const { rows } = await db.execute<RunSummary>(sql`
    select
      run.kind, run.state, run.error,
      run.workflow_id as "workflowId",
      coalesce(
        extract(epoch from coalesce(run.finished_at, clock_timestamp()) - run.started_at),
        0
      )::float8 as seconds,
      (case
        when chosen.companies > 0 then chosen.taken
        else (select count(*) from ${companies} where deleted_at is null)
      end)::int as companies,
      case
        when run.finished_at is null or parts.requests >= run.requests then parts.done::int
      end as "companiesDone",
      (case
        when run.finished_at is null then parts.rows + listed.rows
        else run.rows_inserted + run.rows_changed + run.rows_unchanged
      end)::float8 as rows
    from (
      select
        -- A backfill ends with a company's readings. The parts of a reconcile have no last one.
        count(*) filter (where resource = 'intervals' and state <> 'running')
          + count(distinct company_id) filter (where kind = 'reconcile')
          - count(distinct company_id) filter (where kind = 'reconcile' and state = 'running')
          as done,
        coalesce(sum(rows_inserted + rows_changed + rows_unchanged), 0) as rows,
        coalesce(sum(requests), 0) as requests
      from ${runs}
      where run_id = ${runId} and resource is not null
    ) parts
      cross join (
        select coalesce(sum(cardinality(ids)), 0) as rows
        from ${pages}
        where run_id = ${runId} and pass = 1
      ) listed
      cross join (
        select count(*) as companies, count(*) filter (where not refused) as taken
        from ${runCompanies}
        where run_id = ${runId}
      ) chosen
      left join (
        select *
        from ${runs}
        where run_id = ${runId} and company_id is null and resource is null
      ) run on true`);
  const [summary] = rows;
  if (summary === undefined) throw new Error(`nothing was read of run ${runId}`);
  return summary;
}

/** Maximum number of failed parts of a run that are listed. */
const failedMax = 100;

/** A part of a run that ended in another state than complete. */
export type FailedPart = {
  readonly name: string | null;
  readonly resource: string;
  readonly state: RunState;
  readonly error: string | null;
};

async function readFailed(db: Executor, runId: string): Promise<FailedPart[]> {
  const { rows } = await db.execute<FailedPart>(sql`
    select coalesce(c.name, part.company_id::text) as name, part.resource, part.state, part.error
    from ${runs} part
      left join ${companies} c on c.id = part.company_id
    where part.run_id = ${runId}
      and part.resource is not null
      and part.state not in ('running', 'complete')
    order by part.finished_at desc
    limit ${failedMax}`);
  return rows;
}

/** A company that a run is reading. */
export type CompanyProgress = {
  readonly name: string;
  readonly resource: CompanyResource;
  /** The place of the resource among `companyResources`, from 1. */
  readonly step: number;
  readonly unit: 'records' | 'meters';
  /** How many of `unit` are read; a meter under way counts as the fraction that is written. */
  readonly done: number;
  /** How many there are in all; unknown before the first page. */
  readonly of: number | null;
};

async function readRunning(db: Executor, runId: string): Promise<CompanyProgress[]> {
  const { rows } = await db.execute<Omit<CompanyProgress, 'step'>>(sql`
    select
      coalesce(c.name, part.company_id::text) as name,
      part.resource,
      case part.resource when 'intervals' then 'meters' else 'records' end as unit,
      coalesce(
        case part.resource
          when 'intervals' then least(
            read.done
              + coalesce(least(1, part.distinct_ids::float8 / nullif(part.total_said, 0)), 0),
            read.total
          )
          else listed.done
        end,
        0
      )::float8 as done,
      (case part.resource when 'intervals' then read.total else listed.total end)::float8 as of
    from ${runs} part
      left join ${companies} c on c.id = part.company_id
      left join lateral (
        -- The number of records that the latest pass listed.
        select sum(cardinality(ids)) as done, max(total) as total
        from ${pages}
        where run_id = part.run_id
          and company_id = part.company_id
          and resource = part.resource
        group by pass
        order by pass desc
        limit 1
      ) listed on true
      left join lateral (
        select
          count(*) filter (where fetched.updated_at >= part.started_at) as done,
          count(*) as total
        from ${meters} m
          left join ${intervalFetches} fetched on fetched.meter_id = m.id
        where part.resource = 'intervals'
          and m.company_id = part.company_id
          and m.deleted_at is null
      ) read on true
    where part.run_id = ${runId}
      and part.company_id is not null
      and part.state = 'running'
    order by part.started_at, part.company_id`);
  return rows.map((row) => ({ ...row, step: companyResources.indexOf(row.resource) + 1 }));
}

/**
 * Reads the runs of a kind. A run that is suspect only because of deletions has read everything, so
 * it counts as complete once somebody has decided on them.
 * @param undecided number of deletions that wait for a decision
 */
export async function readKindOfRuns(
  db: Executor,
  kind: RunKind,
  undecided: number,
): Promise<KindOfRuns> {
  const underWay = await readUnderWay(db, kind);
  const last = await readLast(db, kind);
  const counted = last && (await countParts(db, last.runId));
  const readAll = last?.state === 'suspect' && counted?.toDecide === counted?.parts.suspect;
  const decided = readAll && undecided === 0;
  return {
    ...underWay,
    last: last &&
      counted && {
        ...last,
        ...(decided ? { state: 'complete', error: null } : {}),
        awaitsDecision: readAll && !decided,
        parts: counted.parts,
      },
    ...(await readLastComplete(db, kind, readAll ? last.runId : null)),
  };
}

/** Whether any full run of all companies has ended with data. */
export async function isLoaded(db: Executor): Promise<boolean> {
  const { rows: ended } = await db.execute(sql`
    select run.run_id
    from ${runs} run
    where ${isOfKind('full')}
      and run.state in ('complete', 'partial', 'suspect')
      and not ${isOfChosen}
    limit 1`);
  return ended.length > 0;
}

/** Whether `run` is a run of a kind, and not a part of it. */
const isOfKind = (kind: RunKind): SQL =>
  sql`run.company_id is null and run.resource is null and run.kind = ${kind}`;

/** Whether companies were chosen for `run`. */
const isOfChosen: SQL = sql`exists (
        select from ${runCompanies} chosen where chosen.run_id = run.run_id
      )`;

async function readUnderWay(
  db: Executor,
  kind: RunKind,
): Promise<Pick<KindOfRuns, 'running' | 'underWay'>> {
  const { rows } = await db.execute<Row<RunUnderWay> & { running: number }>(sql`
    select
      count(*) over ()::int as running,
      run.run_id as "runId",
      run.started_at as "startedAt",
      progress.at as "progressAt",
      extract(epoch from clock_timestamp() - progress.at)::float8 as "progressSecondsAgo"
    from ${runs} run
      cross join lateral (
        select max(greatest(part.started_at, part.progress_at, latest.read_at)) as at
        from ${runs} part
          left join lateral (
            select read_at
            from ${pages}
            where run_id = run.run_id
              and company_id = coalesce(part.company_id, ${noCompany}::uuid)
              and resource = part.resource
            order by pass desc, asked desc
            limit 1
          ) latest on true
        where part.run_id = run.run_id and part.resource is not null and part.finished_at is null
      ) begun
      cross join lateral (
        select max(part.finished_at) as at
        from ${runs} part
        where part.run_id = run.run_id and part.resource is not null
      ) ended
      cross join lateral (select greatest(run.started_at, begun.at, ended.at) as at) progress
    where ${isOfKind(kind)} and run.finished_at is null
    order by progress.at
    limit 1`);
  const [first] = rows;
  if (first === undefined) return { running: 0, underWay: null };
  const { running, ...underWay } = first;
  return { running, underWay };
}

async function readLast(db: Executor, kind: RunKind) {
  type Last = Omit<NonNullable<KindOfRuns['last']>, 'awaitsDecision' | 'parts'>;
  // The first event of a company starts its first backfill, whose run id is the company's id.
  const { rows } = await db.execute<Last>(sql`
    select
      run.run_id as "runId",
      run.state,
      run.started_at as "startedAt",
      run.finished_at as "finishedAt",
      run.error,
      run.rows_missed::float8 as "missedRows"
    from ${runs} run
    where ${isOfKind(kind)}
      and run.finished_at is not null
      and (
        run.state <> 'complete'
        or not exists (
          select
          from ${runCompanies} chosen
          where chosen.run_id = run.run_id and chosen.company_id = run.run_id
        )
      )
    order by run.finished_at desc
    limit 1`);
  return rows[0] ?? null;
}

async function readLastComplete(db: Executor, kind: RunKind, readAll: string | null) {
  type Complete = Pick<KindOfRuns, 'lastCompleteAt' | 'lastCompleteSecondsAgo'>;
  const { rows } = await db.execute<Complete>(sql`
    select
      run.finished_at as "lastCompleteAt",
      extract(epoch from clock_timestamp() - run.finished_at)::float8 as "lastCompleteSecondsAgo"
    from ${runs} run
    where ${isOfKind(kind)}
      and (run.state = 'complete' or run.run_id = ${readAll})
      and run.finished_at is not null
      and not ${isOfChosen}
    order by run.finished_at desc
    limit 1`);
  return rows[0] ?? { lastCompleteAt: null, lastCompleteSecondsAgo: null };
}

/** Counts the parts of a run by state, and the parts that only wait for a decision on deletions. */
async function countParts(db: Executor, runId: string) {
  const counts = await db
    .select({
      state: runs.state,
      parts: count(),
      toDecide: sql<number>`(count(*) filter (where ${runs.error} ~ ${onlyUntilDecided}))::int`,
    })
    .from(runs)
    .where(and(eq(runs.runId, runId), isNotNull(runs.resource)))
    .groupBy(runs.state);
  const none = Object.fromEntries(runStates.map((state) => [state, 0])) as Record<RunState, number>;
  return {
    parts: { ...none, ...Object.fromEntries(counts.map(({ state, parts }) => [state, parts])) },
    toDecide: counts.find(({ state }) => state === 'suspect')?.toDecide ?? 0,
  };
}

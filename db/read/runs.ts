import {
  and,
  count,
  desc,
  eq,
  isNotNull,
  isNull,
  max,
  ne,
  not,
  notInArray,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { type CompanyResource, companyResources } from '../../contract/endpoints.ts';
import { type RunKind, type RunState, runStates } from '../../contract/names.ts';
import { onlyUntilDecided } from '../../contract/words.ts';
import type { KindOfRuns } from '../../health/measured.ts';
import { isWhole } from '../backfill/runs.ts';
import type { Executor } from '../connection/connect.ts';
import { intervalFetches, noCompany, pages, runCompanies, runs } from '../schema/reads.ts';
import { companies, meters } from '../schema/utility.ts';
import { secondsSince } from './bounds.ts';

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
  const { limit, before } = page;
  const earlier =
    before &&
    sql`(${runs.finishedAt}, ${runs.runId}) < (${before.finishedAt}::timestamptz, ${before.runId}::uuid)`;
  return await db
    .select()
    .from(runs)
    .where(and(isWhole(runs), isNotNull(runs.finishedAt), earlier))
    .orderBy(desc(runs.finishedAt), desc(runs.runId))
    .limit(limit);
}

export const readRun = async (db: Executor, runId: string): Promise<ListedRun | undefined> =>
  (
    await db
      .select()
      .from(runs)
      .where(and(eq(runs.runId, runId), isWhole(runs)))
  )[0];

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

const part = alias(runs, 'part');

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
    ...(await readLastComplete(db, kind, readAll ? last.runId : undefined)),
  };
}

/** Whether any full run of all companies has ended with data. */
export async function isLoaded(db: Executor): Promise<boolean> {
  const withData = sql`${runs.state} in ('complete', 'partial', 'suspect')`;
  const [ended] = await db
    .select({ runId: runs.runId })
    .from(runs)
    .where(and(isOfKind('full'), withData, not(isOfChosen)))
    .limit(1);
  return ended !== undefined;
}

const isOfKind = (kind: RunKind): SQL | undefined => and(isWhole(runs), eq(runs.kind, kind));

const hasChosen = (company: SQL | undefined): SQL => sql`exists (
      select
      from ${runCompanies}
      where ${and(eq(runCompanies.runId, runs.runId), company)}
    )`;

const isOfChosen = hasChosen(undefined);
/** The first event of a company starts its first backfill, whose run id is the company's id. */
const isFirstBackfill = hasChosen(eq(runCompanies.companyId, runs.runId));

async function readUnderWay(db: Executor, kind: RunKind) {
  const ofRun = and(eq(part.runId, runs.runId), isNotNull(part.resource));
  const latest = db
    .select({ readAt: pages.readAt })
    .from(pages)
    .where(
      and(
        eq(pages.runId, runs.runId),
        eq(pages.companyId, sql`coalesce(${part.companyId}, ${noCompany}::uuid)`),
        eq(pages.resource, part.resource),
      ),
    )
    .orderBy(desc(pages.pass), desc(pages.asked))
    .limit(1)
    .as('latest');
  const begun = db
    .select({
      at: sql`max(greatest(${part.startedAt}, ${part.progressAt}, ${latest.readAt}))`.as(
        'begun_at',
      ),
    })
    .from(part)
    .leftJoinLateral(latest, sql`true`)
    .where(and(ofRun, isNull(part.finishedAt)))
    .as('begun');
  const ended = db
    .select({ at: max(part.finishedAt).as('ended_at') })
    .from(part)
    .where(ofRun)
    .as('ended');
  const progressAt = sql<string>`greatest(${runs.startedAt}, ${begun.at}, ${ended.at})`;
  const [first] = await db
    .select({
      running: sql<number>`count(*) over ()::int`,
      underWay: {
        runId: runs.runId,
        startedAt: runs.startedAt,
        progressAt,
        progressSecondsAgo: secondsSince(progressAt),
      },
    })
    .from(runs)
    .crossJoinLateral(begun)
    .crossJoinLateral(ended)
    .where(and(isOfKind(kind), isNull(runs.finishedAt)))
    .orderBy(progressAt)
    .limit(1);
  return first ?? { running: 0, underWay: null };
}

async function readLast(db: Executor, kind: RunKind) {
  const { runId, state, startedAt, finishedAt, error, rowsMissed } = runs;
  const [last] = await db
    .select({
      runId,
      state,
      startedAt,
      finishedAt: sql<string>`${finishedAt}`,
      error,
      missedRows: rowsMissed,
    })
    .from(runs)
    .where(
      and(isOfKind(kind), isNotNull(finishedAt), or(ne(state, 'complete'), not(isFirstBackfill))),
    )
    .orderBy(desc(finishedAt))
    .limit(1);
  return last ?? null;
}

async function readLastComplete(db: Executor, kind: RunKind, readAll: string | undefined) {
  const [last] = await db
    .select({
      lastCompleteAt: sql<string>`${runs.finishedAt}`,
      lastCompleteSecondsAgo: secondsSince(runs.finishedAt),
    })
    .from(runs)
    .where(
      and(
        isOfKind(kind),
        or(eq(runs.state, 'complete'), readAll === undefined ? undefined : eq(runs.runId, readAll)),
        isNotNull(runs.finishedAt),
        not(isOfChosen),
      ),
    )
    .orderBy(desc(runs.finishedAt))
    .limit(1);
  return last ?? { lastCompleteAt: null, lastCompleteSecondsAgo: null };
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

import { and, eq, isNotNull, isNull, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { codeOfReason } from '../../contract/failures.ts';
import type { RunState } from '../../contract/names.ts';
import { onlyUntilDecided } from '../../contract/words.ts';
import type { RowOf } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { deletes, runCompanies, runs } from '../schema/metersync.ts';
import { clock, failure, isRun } from './runs.ts';

/** How many companies that the service does not have a run's error names. */
const refusedNamed = 5;

/** Lists runs that have not ended, and the workflow of each. */
export async function runsUnderWay(
  db: Executor,
): Promise<{ readonly runId: string; readonly workflowId: string | null }[]> {
  const { runId, workflowId } = runs;
  return await db
    .select({ runId, workflowId })
    .from(runs)
    .where(and(isNull(runs.companyId), isNull(runs.resource), isNull(runs.finishedAt)));
}

/** Fails a run that has not ended, and its parts that are still running. */
export async function failRunAndParts(db: Executor, runId: string, error: string): Promise<void> {
  await failRunning(db, runId, error);
  await sumUp(db, runId, error);
}

/** Fails running parts of ended runs: an activity may begin one before it hears of the end. */
export async function failPartsLeft(db: Executor): Promise<void> {
  const run = alias(runs, 'run');
  await db.execute(sql`
    update ${runs} set
      state = 'failed',
      finished_at = clock_timestamp(),
      error = 'its run has ended'
    where ${runs.resource} is not null
      and ${runs.finishedAt} is null
      and exists (
        select
        from ${runs} ${run}
        where ${run.runId} = ${runs.runId}
          and ${run.companyId} is null
          and ${run.resource} is null
          and ${run.finishedAt} is not null
        offset 0
      )`);
}

/** Fails the running parts of a run. */
async function failRunning(db: Executor, runId: string, error: string): Promise<void> {
  await db
    .update(runs)
    .set({ state: 'failed', finishedAt: clock, ...failure(error) })
    .where(and(eq(runs.runId, runId), eq(runs.state, 'running'), isNotNull(runs.resource)));
}

/** Ends a run: its own row sums up its parts. */
export async function concludeRun(db: Executor, runId: string): Promise<RunState> {
  await failRunning(db, runId, 'it ended without a state');
  await completeDecided(db, runId);
  return await sumUp(db, runId);
}

/** Completes parts that were suspect only for rows that no longer wait for a person. */
async function completeDecided(db: Executor, runId: string): Promise<void> {
  await db.execute(sql`
    update ${runs} set
      state = 'complete',
      error = null,
      error_code = null
    where ${runs.runId} = ${runId}::uuid
      and ${runs.resource} is not null
      and ${runs.state} = 'suspect'
      and ${runs.error} ~ ${onlyUntilDecided}
      and not exists (
        select
        from ${deletes}
        where ${deletes.state} = 'quarantined'
          and case
            when ${runs.companyId} is null then ${deletes.runId} = ${runs.runId}
            else ${deletes.companyId} = ${runs.companyId} and ${deletes.resource} = ${runs.resource}
          end
        offset 0
      )`);
}

/**
 * Sums up a run: the worst part decides its state, the most frequent failure its code. With
 * `error`, a run that has not ended fails in any case.
 */
async function sumUp(db: Executor, runId: string, error?: string): Promise<RunState> {
  const result = await db.execute<RowOf<typeof runs.state>>(sql`
    with part as (
      select *
      from ${runs}
      where ${runs.runId} = ${runId}::uuid
        and ${runs.resource} is not null
    ), refused as (
      select
        count(*) as companies,
        'SERVICE_NOT_FOUND: the service does not have '
          || count(*)
          || ' of the companies chosen: '
          || array_to_string((array_agg(company_id order by company_id))[1:${refusedNamed}::int], ', ')
          || case when count(*) > ${refusedNamed}::int then ', …' else '' end as words
      from ${runCompanies}
      where ${runCompanies.runId} = ${runId}::uuid
        and ${runCompanies.refused}
    ), summary as (
      select
        case
          when bool_or(state in ('failed', 'partial'))
            -- A run that read nothing failed: the list of companies, and parts without an endpoint,
            -- do not make it partial.
            then case
              when bool_or(state <> 'failed' and company_id is not null and requests > 0)
                then 'partial'
              else 'failed'
            end
          when refused.companies > 0 and not bool_or(company_id is not null) then 'failed'
          when bool_or(state = 'suspect') then 'suspect'
          else 'complete'
        end as state,
        nullif(concat_ws('; ', refused.words, string_agg(distinct error, '; ')), '') as error,
        coalesce(sum(pages), 0) as pages,
        coalesce(sum(rows_inserted), 0) as inserted,
        coalesce(sum(rows_changed), 0) as changed,
        coalesce(sum(rows_unchanged), 0) as unchanged,
        coalesce(sum(rows_tombstoned), 0) as tombstoned,
        coalesce(sum(rows_rejected), 0) as rejected,
        coalesce(sum(values_unreadable), 0) as unreadable,
        coalesce(sum(rows_missed), 0) as missed,
        coalesce(sum(drift), 0) as drift,
        coalesce(sum(requests), 0) as requests,
        coalesce(
          mode() within group (order by error_code) filter (where state <> 'complete'),
          case when refused.companies > 0 then 'SERVICE_NOT_FOUND' end
        ) as error_code
      from refused
        left join part on true
      group by refused.companies, refused.words
    )
    update ${runs} set
      state = ${error === undefined ? sql`summary.state` : sql`'failed'`},
      finished_at = clock_timestamp(),
      error = ${error === undefined ? sql`summary.error` : error},
      error_code = ${error === undefined ? sql`summary.error_code` : codeOfReason(error)},
      pages = summary.pages,
      rows_inserted = summary.inserted,
      rows_changed = summary.changed,
      rows_unchanged = summary.unchanged,
      rows_tombstoned = summary.tombstoned,
      rows_rejected = summary.rejected,
      values_unreadable = summary.unreadable,
      rows_missed = summary.missed,
      drift = summary.drift,
      requests = summary.requests
    from summary
    where ${isRun({ runId, companyId: null, resource: null })}
      ${error === undefined ? sql`` : sql`and ${runs.finishedAt} is null`}
    returning ${runs.state}`);
  return result.rows[0]?.state ?? 'failed';
}

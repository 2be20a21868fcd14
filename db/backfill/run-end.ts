import { and, count, eq, exists, isNotNull, isNull, notExists, type SQL, sql } from 'drizzle-orm';
import { alias, type PgColumn } from 'drizzle-orm/pg-core';
import type { RunState } from '../../contract/names.ts';
import { onlyUntilDecided } from '../../contract/words.ts';
import { literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { deletes, pages, runCompanies, runLanes, runs } from '../schema/reads.ts';
import { clock, failureColumns, isRun, isWhole } from './runs.ts';

/** Maximum number of companies that the error of a run names as unknown to the service. */
const refusedNamed = 5;

/** Lists runs that have not ended, and the workflow of each. */
export async function runsUnderWay(
  db: Executor,
): Promise<{ readonly runId: string; readonly workflowId: string | null }[]> {
  const { runId, workflowId } = runs;
  return await db
    .select({ runId, workflowId })
    .from(runs)
    .where(and(isWhole(runs), isNull(runs.finishedAt)));
}

/** Fails a run that has not ended, and its parts that are still running. */
export async function failRunAndParts(db: Executor, runId: string, error: string): Promise<void> {
  await failRunning(db, runId, error);
  await sumUp(db, runId, error);
}

/** Fails running parts of ended runs: an activity may begin a part before it learns of the end. */
export async function failPartsLeft(db: Executor): Promise<void> {
  const run = alias(runs, 'run');
  const ended = db
    .select({})
    .from(run)
    .where(and(eq(run.runId, runs.runId), isWhole(run), isNotNull(run.finishedAt)))
    .offset(literal(0));
  await db
    .update(runs)
    .set({ state: 'failed', finishedAt: clock, error: 'its run has ended' })
    .where(and(isNotNull(runs.resource), isNull(runs.finishedAt), exists(ended)));
}

async function failRunning(db: Executor, runId: string, error: string): Promise<void> {
  await db
    .update(runs)
    .set({ state: 'failed', finishedAt: clock, ...failureColumns(error) })
    .where(and(eq(runs.runId, runId), eq(runs.state, 'running'), isNotNull(runs.resource)));
}

/** Ends a run. The row of the run itself sums up its parts. */
export async function concludeRun(db: Executor, runId: string): Promise<RunState> {
  await failRunning(db, runId, 'it ended without a state');
  await completeDecided(db, runId);
  return await sumUp(db, runId);
}

/** Completes parts that were suspect only because of rows that no longer wait for a decision. */
async function completeDecided(db: Executor, runId: string): Promise<void> {
  const ofPart = sql`case
    when ${runs.companyId} is null then ${deletes.runId} = ${runs.runId}
    else ${deletes.companyId} = ${runs.companyId} and ${deletes.resource} = ${runs.resource}
  end`;
  const waiting = db
    .select({})
    .from(deletes)
    // The state is a literal, as in the condition of the index on these notes.
    .where(and(sql`${deletes.state} = 'quarantined'`, ofPart))
    .offset(literal(0));
  await db
    .update(runs)
    .set({ state: 'complete', ...failureColumns(undefined) })
    .where(
      and(
        eq(runs.runId, runId),
        isNotNull(runs.resource),
        eq(runs.state, 'suspect'),
        sql`${runs.error} ~ ${onlyUntilDecided}`,
        notExists(waiting),
      ),
    );
}

/**
 * Sums up a run. The worst part decides its state, and the most frequent failure decides its code.
 * With `error`, a run that has not ended fails in any case.
 */
async function sumUp(db: Executor, runId: string, error?: string): Promise<RunState> {
  const { failed, partial, suspect, ofCompanies, errors, errorCode, ...totals } = await totalsOf(
    db,
    runId,
  );
  const refused = await whyChosenRefused(db, runId);
  const stateOfParts = (): RunState => {
    // The list of companies and parts without an endpoint do not make a failed run partial.
    if (failed) return partial ? 'partial' : 'failed';
    if (refused !== undefined && !ofCompanies) return 'failed';
    return suspect ? 'suspect' : 'complete';
  };
  const words = [refused, errors].filter((one) => one != null).join('; ');
  const reason = failureColumns(error ?? (words === '' ? undefined : words));
  const [ended] = await db
    .update(runs)
    .set({
      ...totals,
      ...reason,
      ...(error === undefined && { errorCode: errorCode ?? (refused && 'SERVICE_NOT_FOUND') }),
      state: error === undefined ? stateOfParts() : 'failed',
      finishedAt: clock,
    })
    .where(
      and(
        isRun({ runId, companyId: null, resource: null }),
        error === undefined ? undefined : isNull(runs.finishedAt),
      ),
    )
    .returning({ state: runs.state });
  // Listings that were refused, given up or cancelled have left their manifests.
  await db.delete(pages).where(eq(pages.runId, runId));
  await db.delete(runLanes).where(eq(runLanes.runId, runId));
  return ended?.state ?? 'failed';
}

/** Adds up the parts of a run, and reads what decides how it ended. */
async function totalsOf(db: Executor, runId: string) {
  const { companyId, state, requests, error, errorCode } = runs;
  const total = (column: PgColumn) => sql`coalesce(sum(${column}), 0)`.mapWith(Number);
  const any = (condition: SQL) => sql<boolean>`coalesce(bool_or(${condition}), false)`;
  const [totals] = await db
    .select({
      failed: any(sql`${state} in ('failed', 'partial')`),
      partial: any(sql`${state} <> 'failed' and ${companyId} is not null and ${requests} > 0`),
      suspect: any(sql`${state} = 'suspect'`),
      ofCompanies: any(isNotNull(companyId)),
      errors: sql<string | null>`string_agg(distinct ${error}, '; ')`,
      errorCode: sql<string | null>`mode() within group (order by ${errorCode})
        filter (where ${state} <> 'complete')`,
      pages: total(runs.pages),
      rowsInserted: total(runs.rowsInserted),
      rowsChanged: total(runs.rowsChanged),
      rowsUnchanged: total(runs.rowsUnchanged),
      rowsTombstoned: total(runs.rowsTombstoned),
      rowsRejected: total(runs.rowsRejected),
      valuesUnreadable: total(runs.valuesUnreadable),
      rowsMissed: total(runs.rowsMissed),
      drift: total(runs.drift),
      requests: total(requests),
    })
    .from(runs)
    .where(and(eq(runs.runId, runId), isNotNull(runs.resource)));
  if (totals === undefined) throw new Error('an aggregate without a row');
  return totals;
}

/** Why the service refused chosen companies of a run; undefined if it has them all. */
async function whyChosenRefused(db: Executor, runId: string): Promise<string | undefined> {
  const { companyId, refused } = runCompanies;
  const isRefused = and(eq(runCompanies.runId, runId), eq(refused, true));
  const [found] = await db.select({ companies: count() }).from(runCompanies).where(isRefused);
  const companies = found?.companies ?? 0;
  if (companies === 0) return undefined;
  const named = await db
    .select({ companyId })
    .from(runCompanies)
    .where(isRefused)
    .orderBy(companyId)
    .limit(refusedNamed);
  const ids = named.map((row) => row.companyId).join(', ');
  const more = companies > refusedNamed ? ', …' : '';
  return `SERVICE_NOT_FOUND: the service does not have ${companies} of the companies chosen: ${ids}${more}`;
}

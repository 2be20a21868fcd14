import { and, eq, isNull, type SQL, sql } from 'drizzle-orm';
import { alias, type PgColumn } from 'drizzle-orm/pg-core';
import { codeOfReason } from '../../contract/failures.ts';
import type { RunKind, RunState } from '../../contract/names.ts';
import { livesCompany } from '../catch-up/parking.ts';
import { array, columnNames, setToExcluded } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { hot } from '../connection/hot.ts';
import { unreadableIn } from '../read/unreadable-values.ts';
import { recordResources } from '../resources.ts';
import { runs } from '../schema/metersync.ts';

/** A run (company and resource null), or one company's or one resource's part of it. */
export interface RunKey {
  readonly runId: string;
  readonly companyId: string | null;
  readonly resource: string | null;
}

/** The certificate of a part of a run: how much it read and changed. */
export interface RunCounts {
  readonly pages: number;
  readonly passes: number;
  readonly reportedTotal: number | null;
  readonly distinctIds: number;
  readonly inserted: number;
  readonly changed: number;
  readonly unchanged: number;
  readonly tombstoned: number;
  readonly rejected: number;
  /** Values of the records read that no column holds. */
  readonly unreadable?: number | undefined;
  /** Rows changed or gone without the event that should report it. */
  readonly missed?: number;
  /** Pages that moved during the read, over all passes. */
  readonly drift?: number;
  /** Pages requested, over all passes. */
  readonly requests?: number;
}

/**
 * Whether a column has a value, or is null. An index serves `is null`, not `is not distinct from`.
 */
const is = (column: PgColumn, value: string | null): SQL =>
  value === null ? isNull(column) : eq(column, value);

/** Whether a row is that of this run or part. */
export const isRun = ({ runId, companyId, resource }: RunKey): SQL | undefined =>
  and(eq(runs.runId, runId), is(runs.companyId, companyId), is(runs.resource, resource));

export const clock = sql`clock_timestamp()`;

/** A run or a part that began. */
export interface Started {
  /** When, by the warehouse's clock. */
  readonly now: string;
  /** Whether another run already read the same part to its end. */
  readonly readBefore: boolean;
}

/** Begins a run or a part, or begins it again; also notes the workflow of a run. */
export async function startRun(
  db: Executor,
  key: RunKey,
  {
    kind = 'full',
    workflowId,
  }: { readonly kind?: RunKind | undefined; readonly workflowId?: string | undefined } = {},
): Promise<Started> {
  const { runId, companyId, resource } = runs;
  const begun = [runId, companyId, resource, runs.kind, runs.workflowId, runs.state];
  const earlier = alias(runs, 'earlier');
  const result = await hot(db, 'startRun').execute<{ now: string; readBefore: boolean }>(sql`
    insert into ${runs} (${columnNames(begun)})
    values (
      ${key.runId}::uuid,
      ${key.companyId}::uuid,
      ${key.resource},
      ${kind},
      ${workflowId ?? null},
      'running'
    )
    on conflict (run_id, company_id, resource) do update set
      workflow_id = excluded.workflow_id,
      state = 'running',
      finished_at = null,
      error = null,
      error_code = null
    returning
      clock_timestamp()::text as now,
      exists (
        select
        from ${runs} ${earlier}
        where ${earlier.companyId} = ${runs.companyId}
          and ${earlier.resource} = ${runs.resource}
          and ${earlier.runId} <> ${runs.runId}
          and ${earlier.state} = 'complete'
        offset 0
      ) as "readBefore"`);
  return result.rows[0] ?? { now: '', readBefore: true };
}

/** Notes parts of a company as complete for which the service has no endpoint. */
export async function notePartsMissing(
  db: Executor,
  { runId, companyId }: Omit<RunKey, 'resource'>,
  resources: readonly string[],
  error: string | null,
): Promise<void> {
  const { resource, state, finishedAt } = runs;
  const noted = [runs.runId, runs.companyId, resource, state, finishedAt, runs.error];
  await db.execute(sql`
    insert into ${runs} (${columnNames(noted)})
    select ${runId}::uuid, ${companyId}::uuid, resource, 'complete', clock_timestamp(), ${error}
    from unnest(${array(resources, 'text')}) resource
    order by resource
    on conflict (run_id, company_id, resource) do update set
        ${setToExcluded([state, finishedAt, runs.error])},
        error_code = null`);
}

/** What a run has to know of a company before it reads it. */
export interface CompanyInRun {
  /** The resources whose part of the run has ended, in any state. */
  readonly finished: readonly string[];
  /** Whether another run under way is reading the company, and this one has not begun to. */
  readonly busy: boolean;
}

/** Reads how far a run has come with a company, and whether another run is reading it. */
export async function readCompanyInRun(
  db: Executor,
  runId: string,
  companyId: string,
): Promise<CompanyInRun> {
  const part = alias(runs, 'part');
  const run = alias(runs, 'run');
  const isOwn = sql`${part.runId} = ${runId}::uuid and ${part.companyId} = ${companyId}::uuid`;
  const result = await hot(db, 'readCompanyInRun').execute<CompanyInRun>(sql`
    select
      array(
        select ${part.resource}
        from ${runs} ${part}
        where ${isOwn}
          and ${part.finishedAt} is not null
      ) as finished,
      exists (
        select
        from ${runs} ${part}
        where ${part.companyId} = ${companyId}::uuid
          and ${part.state} = 'running'
          and ${part.kind} = 'full'
          and ${part.runId} <> ${runId}::uuid
          and exists (
            select
            from ${runs} ${run}
            where ${run.runId} = ${part.runId}
              and ${run.companyId} is null
              and ${run.resource} is null
              and ${run.finishedAt} is null
            offset 0
          )
      )
      and not exists (
        select
        from ${runs} ${part}
        where ${isOwn}
          and ${part.finishedAt} is null
      ) as busy`);
  return result.rows[0] ?? { finished: [], busy: false };
}

/** Deletes the unfinished parts of a company in a run: nobody reads it, until the run goes on. */
export async function deleteUnfinishedParts(
  db: Executor,
  { runId, companyId }: Pick<RunKey, 'runId'> & { readonly companyId: string },
): Promise<void> {
  await db
    .delete(runs)
    .where(and(eq(runs.runId, runId), eq(runs.companyId, companyId), isNull(runs.finishedAt)));
}

/** Deletes the parts of a company in a run, unless the company lives. Returns whether it did. */
export async function deletePartsOfGone(
  db: Executor,
  { runId, companyId }: Pick<RunKey, 'runId'> & { readonly companyId: string },
): Promise<boolean> {
  const result = await db.execute(sql`
    delete from ${runs}
    where ${runs.runId} = ${runId}::uuid
      and ${runs.companyId} = ${companyId}::uuid
      and not ${livesCompany(sql`${companyId}::uuid`)}`);
  return (result.rowCount ?? 0) > 0;
}

/** Appends to the error of a run or a part, in any state. */
export async function noteRunError(db: Executor, key: RunKey, error: string): Promise<void> {
  await db
    .update(runs)
    .set({ error: sql`concat_ws('; ', ${runs.error}, ${error}::text)` })
    .where(isRun(key));
}

/**
 * Ends a run or a part. Without counts it keeps the pages and rows that its progress noted; how many
 * records were listed is not known, as progress has those of one meter.
 */
export async function finishRun(
  db: Executor,
  key: RunKey,
  state: RunState,
  { counts, error }: { counts?: RunCounts; error?: string } = {},
): Promise<void> {
  const counted = counts && {
    pages: counts.pages,
    passes: counts.passes,
    rowsInserted: counts.inserted,
    rowsChanged: counts.changed,
    rowsUnchanged: counts.unchanged,
    rowsTombstoned: counts.tombstoned,
    rowsRejected: counts.rejected,
    valuesUnreadable: unreadableOfPart(key) ?? counts.unreadable ?? 0,
    rowsMissed: counts.missed ?? 0,
    drift: counts.drift ?? 0,
    requests: counts.requests ?? counts.pages,
  };
  const { reportedTotal = null, distinctIds = null } = counts ?? {};
  const ended = {
    state,
    finishedAt: clock,
    reportedTotal,
    distinctIds,
    ...failure(error),
    ...counted,
  };
  await hot(db, 'finishRun').execute(db.update(runs).set(ended).where(isRun(key)));
}

/**
 * Values of the records of a part that no column holds, as its end finds them; undefined for a part
 * of none. The records of companies contain their sites.
 */
export function unreadableOfPart({ resource, companyId }: RunKey): SQL<number> | undefined {
  if (resource === 'companies')
    return sql`${unreadableIn('companies', null)} + ${unreadableIn('sites', null)}`;
  const ofRecords = recordResources.find((name) => name === resource);
  return ofRecords && sql`${unreadableIn(ofRecords, companyId)}`;
}

/** The error columns of a run or a part: message and code. */
export const failure = (
  error: string | undefined,
): { error: string | null; errorCode: string | null } => ({
  error: error ?? null,
  errorCode: error === undefined ? null : codeOfReason(error),
});

/**
 * Notes the progress of a part of a run. Returns the warehouse's clock, or undefined without such a
 * part. For intervals, ids and total are those of the meter being read.
 */
export async function noteProgress(
  db: Executor,
  key: RunKey,
  counts: Pick<
    RunCounts,
    'pages' | 'reportedTotal' | 'distinctIds' | 'inserted' | 'changed' | 'unchanged'
  >,
): Promise<string | undefined> {
  const { pages, reportedTotal, distinctIds, inserted, changed, unchanged } = counts;
  const noting = db
    .update(runs)
    .set({
      pages,
      reportedTotal,
      distinctIds,
      rowsInserted: inserted,
      rowsChanged: changed,
      rowsUnchanged: unchanged,
      progressAt: clock,
    })
    .where(isRun(key))
    .returning({ now: sql`clock_timestamp()::text`.as('now') });
  return (await hot(db, 'noteProgress').execute<{ now: string }>(noting)).rows[0]?.now;
}

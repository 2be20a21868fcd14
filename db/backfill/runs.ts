import {
  and,
  desc,
  eq,
  exists,
  inArray,
  isNotNull,
  isNull,
  ne,
  not,
  notExists,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import { alias, type PgColumn } from 'drizzle-orm/pg-core';
import { codeOfReason, type FailureCode } from '../../contract/failures.ts';
import type { RunKind, RunState } from '../../contract/names.ts';
import { isAmong, literal } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { waitingForCompany } from '../queue/queue.ts';
import { unreadableIn } from '../records/unreadable-values.ts';
import { recordResources } from '../resources.ts';
import { noCompany, runCompanies, runs } from '../schema/reads.ts';
import { companies } from '../schema/utility.ts';

/** A run (company and resource are null), or a part of a run. */
export interface RunKey {
  readonly runId: string;
  readonly companyId: string | null;
  readonly resource: string | null;
}

/** How much a part of a run read and changed. */
export interface RunCounts {
  readonly pages: number;
  readonly passes: number;
  readonly reportedTotal: number | null;
  readonly distinctIds: number;
  readonly inserted: number;
  readonly changed: number;
  readonly unchanged: number;
  readonly tombstoned?: number;
  readonly rejected: number;
  /** Values in the records that could not be read. */
  readonly unreadable?: number | undefined;
  /** Rows that changed or are gone without an event that reported it. */
  readonly missed?: number;
  /** Pages requested, over all passes. */
  readonly requests?: number;
}

/** Equality with a value that may be null: no index serves `is not distinct from`. */
const is = (column: PgColumn, value: string | null): SQL =>
  value === null ? isNull(column) : eq(column, value);

/** Whether a row belongs to this run or part. */
export const isRun = ({ runId, companyId, resource }: RunKey): SQL | undefined =>
  and(eq(runs.runId, runId), is(runs.companyId, companyId), is(runs.resource, resource));

/** Whether a row belongs to a run itself, and not to a part. */
export const isWhole = (run: Record<'companyId' | 'resource', PgColumn>) =>
  and(isNull(run.companyId), isNull(run.resource));

export const clock = sql`clock_timestamp()`;

/**
 * Begins a run or a part, or begins it again. Also notes the workflow of a run. Returns the
 * warehouse's clock, and whether another run already read the same part completely.
 */
export async function startRun(
  db: Executor,
  key: RunKey,
  {
    kind = 'full',
    workflowId = null,
  }: { readonly kind?: RunKind | undefined; readonly workflowId?: string | null | undefined } = {},
): Promise<{ readonly now: string; readonly readBefore: boolean }> {
  const { runId, companyId, resource } = runs;
  const earlier = alias(runs, 'earlier');
  const completed = db
    .select({})
    .from(earlier)
    .where(
      and(
        eq(earlier.companyId, companyId),
        eq(earlier.resource, resource),
        ne(earlier.runId, runId),
        eq(earlier.state, 'complete'),
      ),
    )
    .offset(literal(0));
  const [started] = await db
    .insert(runs)
    .values({ ...key, kind, workflowId, state: 'running' })
    .onConflictDoUpdate({
      target: [runId, companyId, resource],
      set: {
        workflowId,
        claimedTo: noCompany,
        state: 'running',
        finishedAt: null,
        ...failureColumns(undefined),
      },
    })
    .returning({
      now: sql<string>`clock_timestamp()::text`,
      readBefore: sql<boolean>`${exists(completed)}`,
    });
  return started ?? { now: '', readBefore: true };
}

/** Notes the parts of a company for which the service has no endpoint as complete. */
export async function notePartsMissing(
  db: Executor,
  key: Omit<RunKey, 'resource'>,
  resources: readonly string[],
  error: string | null,
): Promise<void> {
  if (resources.length === 0) return;
  const ended = { state: 'complete', finishedAt: clock, error, errorCode: null } as const;
  await db
    .insert(runs)
    .values(resources.toSorted().map((resource) => ({ ...key, resource, ...ended })))
    .onConflictDoUpdate({ target: [runs.runId, runs.companyId, runs.resource], set: ended });
}

interface CompanyInRun {
  /** Resources whose parts have ended, in any state. */
  readonly finished: readonly string[];
  /** Whether events wait for the company's listings. */
  readonly awaited: boolean;
}

/** Reads how far a run has read a company. */
export async function readCompanyInRun(
  db: Executor,
  { runId, companyId }: { readonly runId: string; readonly companyId: string },
): Promise<CompanyInRun> {
  const finished = db
    .select({ resource: runs.resource })
    .from(runs)
    .where(and(eq(runs.runId, runId), eq(runs.companyId, companyId), isNotNull(runs.finishedAt)));
  const [read] = await db
    .select({
      finished: sql<string[]>`array${finished}`,
      awaited: sql<boolean>`${exists(waitingForCompany(db, companyId))}`,
    })
    .from(sql`(select) one`);
  return read ?? { finished: [], awaited: false };
}

/** Deletes the parts of a company without a live row in a run. Returns whether any existed. */
export async function deletePartsOfGone(
  db: Executor,
  { runId, companyId }: Pick<RunKey, 'runId'> & { readonly companyId: string },
): Promise<boolean> {
  const { rowCount } = await db
    .delete(runs)
    .where(
      and(
        eq(runs.runId, runId),
        eq(runs.companyId, companyId),
        not(livesCompany(sql`${companyId}::uuid`)),
      ),
    );
  return (rowCount ?? 0) > 0;
}

/** Appends to the error of a run or a part, in any state. */
export async function noteRunError(db: Executor, key: RunKey, error: string): Promise<void> {
  await db
    .update(runs)
    .set({ error: sql`concat_ws('; ', ${runs.error}, ${error}::text)` })
    .where(isRun(key));
}

/**
 * Ends a run or a part. Without counts it keeps the pages and rows of its progress, but not the
 * number of listed records, which may be of only one meter.
 */
export async function finishRun(
  db: Executor,
  key: RunKey,
  state: RunState,
  { counts, error }: { counts?: RunCounts; error?: string | undefined } = {},
): Promise<void> {
  await db
    .update(runs)
    .set(ended(key, state, error, counts))
    .where(isRun(key));
}

/** The columns of a run or a part that ended. */
export const ended = (
  key: RunKey,
  state: RunState,
  error: string | undefined,
  counts: RunCounts | undefined,
) => ({
  state,
  finishedAt: clock,
  reportedTotal: null,
  distinctIds: null,
  ...failureColumns(error),
  ...(counts && {
    ...progressColumns(counts),
    passes: counts.passes,
    rowsTombstoned: counts.tombstoned ?? 0,
    rowsRejected: counts.rejected,
    valuesUnreadable: unreadableOfPart(key) ?? counts.unreadable ?? 0,
    rowsMissed: counts.missed ?? 0,
    drift: 0,
    requests: counts.requests ?? counts.pages,
  }),
});

/**
 * The number of values that could not be read in the records of a part, counted when the part ends;
 * undefined for a part without records. The records of companies contain their sites.
 */
function unreadableOfPart({ resource, companyId }: RunKey): SQL<number> | undefined {
  if (resource === 'companies')
    return sql`${unreadableIn('companies', null)} + ${unreadableIn('sites', null)}`;
  const ofRecords = recordResources.find((name) => name === resource);
  return ofRecords && sql`${unreadableIn(ofRecords, companyId)}`;
}

/** The error columns of a run or a part: message and code. */
export const failureColumns = (
  error: string | undefined,
): { error: string | null; errorCode: string | null } => ({
  error: error ?? null,
  errorCode: error === undefined ? null : codeOfReason(error),
});

/** The counts of a part of a run that is under way. */
type Progress = Pick<
  RunCounts,
  'pages' | 'reportedTotal' | 'distinctIds' | 'inserted' | 'changed' | 'unchanged'
>;

const progressColumns = (counts: Progress) => ({
  pages: counts.pages,
  reportedTotal: counts.reportedTotal,
  distinctIds: counts.distinctIds,
  rowsInserted: counts.inserted,
  rowsChanged: counts.changed,
  rowsUnchanged: counts.unchanged,
});

/**
 * Notes the progress of a part of a run. Returns the warehouse's clock, or undefined if there is no
 * such part. For intervals, ids and total are of the meter that is being read.
 */
export async function noteProgress(
  db: Executor,
  key: RunKey,
  counts: Progress,
): Promise<string | undefined> {
  const [noted] = await db
    .update(runs)
    .set({ ...progressColumns(counts), progressAt: clock })
    .where(isRun(key))
    .returning({ now: sql<string>`clock_timestamp()::text` });
  return noted?.now;
}

/** Whether a run that began after a time has read all companies completely; of any kind if none is given. */
export function readAllSince(db: Executor, after: SQL, kind?: RunKind): SQL {
  const run = alias(runs, 'whole');
  const chosen = db.select({}).from(runCompanies).where(eq(runCompanies.runId, run.runId));
  const complete = db
    .select({})
    .from(run)
    .where(
      and(
        isWhole(run),
        kind === undefined ? undefined : eq(run.kind, kind),
        eq(run.state, 'complete'),
        // Implied by the start, but the index has the end.
        sql`${run.finishedAt} > ${after}`,
        sql`${run.startedAt} > ${after}`,
        notExists(chosen),
      ),
    );
  return exists(complete);
}

/** Whether a company has a live row. Failures of a company that is gone need no retry. */
const livesCompany = (companyId: SQL): SQL => sql`exists (
        select
        from ${companies} c
        where c.id = ${companyId}
          and c.deleted_at is null
        offset 0
      )`;

/**
 * Reads live companies whose last read failed for one of these reasons. `everything` is true when
 * the list of companies itself could not be read.
 */
export async function failedParts(
  db: Executor,
  codes: readonly FailureCode[],
): Promise<{ companies: string[]; everything: boolean }> {
  const { companyId, resource, state, errorCode, startedAt } = runs;
  const last = db
    .selectDistinctOn([companyId, resource], { companyId, state, errorCode })
    .from(runs)
    .where(isNotNull(resource))
    .orderBy(companyId, resource, desc(startedAt))
    .as('last');
  const failed = await db
    .selectDistinct({ companyId: last.companyId })
    .from(last)
    .where(
      and(
        inArray(last.state, ['failed', 'partial']),
        isAmong(last.errorCode, codes),
        or(isNull(last.companyId), livesCompany(sql`${last.companyId}`)),
      ),
    )
    .orderBy(last.companyId);
  const companies = failed.flatMap((row) => row.companyId ?? []);
  return { companies, everything: companies.length < failed.length };
}

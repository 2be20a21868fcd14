import { Context } from '@temporalio/activity';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import { deleteUnfinishedParts, readCompanyInRun } from '../../db/backfill/runs.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import { closedService } from '../gates.ts';
import { readCompany, type SliceLimits } from './company.ts';
import { type CompanyReading, reachedCursor } from './cursor.ts';

/** Companies that one activity begins to read, in order. */
export interface Slice {
  readonly runId: string;
  readonly companies: readonly string[];
}

/** A company that is read by a workflow of its own, and from where. */
export type CompanyLeft = Omit<CompanyReading, 'runId'>;

/** The companies of a slice that still have to be read. */
export interface SliceRead {
  /** Companies that need more than a slice, that fail for now, or that another run is reading. */
  readonly left: readonly CompanyLeft[];
  /** Companies that were not begun; absent in results of version 0.1.0. */
  readonly rest?: readonly string[];
}

/** Begins a slice. */
export async function beginSlice(deps: ActivityDependencies): Promise<SliceLimits> {
  const until = deps.now() + attemptPolicy.sliceMs;
  return { isFull: () => deps.now() > until, closed: await closedService(deps) };
}

/** Reads companies until the slice is full or one fails for now, which a workflow of its own retries. */
export async function readSlice(deps: ActivityDependencies, { runId, companies }: Slice): Promise<SliceRead> {
  const { db } = deps.warehouse;
  const limits = await beginSlice(deps);
  const left: CompanyLeft[] = [];
  for (const [at, companyId] of companies.entries()) {
    if (at > 0 && limits.isFull()) return { left, rest: companies.slice(at) };
    const inRun = await readCompanyInRun(db, runId, companyId);
    if (inRun.busy) {
      left.push({ companyId, cursor: null });
      continue;
    }
    const reading = { runId, companyId, cursor: null };
    const step = await readCompany(deps, reading, inRun, limits).catch(() => {
      Context.current().cancellationSignal.throwIfAborted();
      return { done: false, cursor: reachedCursor(companyId) };
    });
    if (step.done) continue;
    // If another run waits for the company, it may read it first.
    await deleteUnfinishedParts(db, { runId, companyId });
    left.push({ companyId, cursor: step.cursor });
    return { left, rest: companies.slice(at + 1) };
  }
  return { left, rest: [] };
}

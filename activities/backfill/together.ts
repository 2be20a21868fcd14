import { Context } from '@temporalio/activity';
import { workflowIds } from '../../contract/names.ts';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import { deleteUnfinishedParts, finishedOfCompanies, isReadElsewhere } from '../../db/backfill/runs.ts';
import { type Allowance, allowanceFrom, TooMuch } from '../allowance.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import type { CompanyReading, CompanyStep } from './intervals.ts';

export interface CompaniesReading {
  readonly runId: string;
  readonly companies: readonly string[];
}

/** A company that is left to a workflow of its own, and where its meters go on. */
export type CompanyLeft = Omit<CompanyReading, 'runId'>;

/** The companies that are left; all others are read. */
export interface CompaniesStep {
  readonly left: readonly CompanyLeft[];
}

type Read = (
  input: CompanyReading,
  finished: readonly string[],
  allowance: Allowance,
) => Promise<CompanyStep>;

/**
 * Reads companies one by one, as long as each is small. Leaves companies that are large, that another run is
 * reading, or that fail temporarily: a workflow of their own gives them their own retries, progress and
 * cancellation.
 */
export async function readTogether(
  deps: ActivityDependencies,
  { runId, companies }: CompaniesReading,
  read: Read,
): Promise<CompaniesStep> {
  const finished = await finishedOfCompanies(deps.warehouse.db, runId, companies);
  const left: CompanyLeft[] = [];
  let failures = 0;
  for (const companyId of companies) {
    const input = { runId, companyId, cursor: null };
    const resources = finished.get(companyId) ?? [];
    const end =
      failures < attemptPolicy.failuresInARow
        ? await readSmall(deps, input, resources, read)
        : { done: false };
    if (!end.done) left.push({ companyId, cursor: end.cursor ?? null });
    if (failures < attemptPolicy.failuresInARow) failures = end.failed === true ? failures + 1 : 0;
  }
  return { left };
}

async function readSmall(
  deps: ActivityDependencies,
  input: CompanyReading,
  finished: readonly string[],
  read: Read,
): Promise<Pick<CompanyStep, 'done'> & Partial<CompanyStep> & { readonly failed?: boolean }> {
  const { db } = deps.warehouse;
  const ended = await deps.howEnded(workflowIds.backfillCompany(input.companyId));
  if (ended === undefined || (await isReadElsewhere(db, input))) return { done: false };
  try {
    const step = await read(input, finished, allowanceFrom(deps.now));
    if (!step.done) await deleteUnfinishedParts(db, input);
    return step;
  } catch (error) {
    Context.current().cancellationSignal.throwIfAborted();
    await deleteUnfinishedParts(db, input);
    // The company's own workflow retries it, so that no other company waits.
    return { done: false, failed: !(error instanceof TooMuch) };
  }
}

import { Context } from '@temporalio/activity';
import { workflowIds } from '../../contract/names.ts';
import { finishedOfCompanies, forgetRunning, isReadElsewhere } from '../../db/backfill/runs.ts';
import { type Allowance, allowanceFrom, TooMuch } from '../allowance.ts';
import type { ActivityDependencies } from '../dependencies.ts';
import type { CompanyReading, CompanyStep } from './intervals.ts';

/** Companies that fail one after the other: then it is no longer each one's own trouble, and the rest is left. */
const failuresInARow = 2;

export interface CompaniesReading {
  readonly runId: string;
  readonly companies: readonly string[];
}

/** A company that is left to a workflow of its own, and where its meters stand. */
export type CompanyLeft = Omit<CompanyReading, 'runId'>;

/** Companies that are left; the others are read. */
export interface CompaniesStep {
  readonly left: readonly CompanyLeft[];
}

type Read = (
  input: CompanyReading,
  finished: readonly string[],
  allowance: Allowance,
) => Promise<CompanyStep>;

/**
 * Reads companies, one after the other, as long as they are small. It leaves those that are large, that another run is
 * reading, or that fail in a way that may pass: their tries, their progress and their cancellation are their own.
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
    const given = finished.get(companyId) ?? [];
    const end = failures < failuresInARow ? await readSmall(deps, input, given, read) : { done: false };
    if (!end.done) left.push({ companyId, cursor: end.cursor ?? null });
    if (failures < failuresInARow) failures = end.failed === true ? failures + 1 : 0;
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
    if (!step.done) await forgetRunning(db, input);
    return step;
  } catch (error) {
    Context.current().cancellationSignal.throwIfAborted();
    await forgetRunning(db, input);
    // Whatever it is, the company tries again by itself, and keeps no other waiting.
    return { done: false, failed: !(error instanceof TooMuch) };
  }
}

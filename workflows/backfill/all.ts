import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ActivityFailure,
  CancellationScope,
  ChildWorkflowFailure,
  condition,
  continueAsNew,
  executeChild,
  isCancellation,
  ParentClosePolicy,
  patched,
  uuid4,
} from '@temporalio/workflow';
import type { CompanyReading, CompanyStep } from '../../activities/backfill/cursor.ts';
import type { CompanyLeft, SliceRead } from '../../activities/backfill/slice.ts';
import { backfillBounds } from '../../contract/limits.ts';
import { checkKinds, type RunState, taskQueues, workflowIds } from '../../contract/names.ts';
import { backfilling, noting, waiting } from '../activity-options.ts';
import { startChecks } from '../start-checks.ts';
import { backfillCompany, reasonOf } from './company.ts';

/** The warehouse says which companies to read: those chosen for the run; all of them if none are chosen. */
export interface BackfillInput {
  /** Absent when a schedule starts it. */
  readonly runId?: string;
  /** Set when a long run continues as new. */
  readonly after?: {
    /** The last company that was examined before the run continued as new. */
    readonly companyId: string;
    /** Whether the list of companies was read. */
    readonly listed: boolean;
  };
}

/** Reads all companies, some at a time; returns how the run ended. */
export async function backfillAll(input: BackfillInput = {}): Promise<RunState> {
  const runId = input.runId ?? uuid4();
  try {
    const { listed } = input.after ?? (await backfilling.beginRun({ runId }));
    const after = input.after?.companyId ?? null;
    const next = { runId, after, limit: backfillBounds.companiesPerRun, listed };
    const { companies, last } = await backfilling.nextCompanies(next);
    await readAll(runId, companies);
    if (last !== null) await continueAsNew<typeof backfillAll>({ runId, after: { companyId: last, listed } });
    const state = await noting.concludeRun({ runId });
    await startChecks({ runId, kinds: checkKinds });
    return state;
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => fail(runId, 'cancelled'));
    else if (error instanceof ActivityFailure) return await fail(runId, reasonOf(error));
    throw error;
  }
}

async function fail(runId: string, error: string): Promise<RunState> {
  await noting.failRun({ runId, companyId: null, resource: null, error });
  return 'failed';
}

/**
 * Reads companies in slices, `companiesAtOnce` at a time. A company that a slice does not finish continues in
 * a workflow of its own, so that it does not delay others; a single company begins in one.
 */
async function readAll(runId: string, ids: readonly string[]): Promise<void> {
  const { companiesAtOnce, companiesOfSlice } = backfillBounds;
  const size = Math.min(companiesOfSlice, Math.ceil(ids.length / companiesAtOnce));
  const slices: (readonly string[])[] = [];
  const left: CompanyLeft[] = [];
  if (ids.length === 1) left.push(...ids.map(fromItsStart));
  else for (let at = 0; at < ids.length; at += size) slices.push(ids.slice(at, at + size));
  let reading = 0;
  const lane = async (): Promise<void> => {
    for (;;) {
      const company = left.shift();
      const slice = company === undefined ? slices.shift() : undefined;
      if (company !== undefined) await readToItsEnd(runId, company);
      else if (slice !== undefined) {
        reading += 1;
        const read = await readSlice(runId, slice);
        reading -= 1;
        left.push(...read.left);
        if (read.rest !== undefined && read.rest.length > 0) slices.unshift(read.rest);
      } else if (reading === 0) return;
      else await condition(() => left.length > 0 || slices.length > 0 || reading === 0);
    }
  };
  const lanes = Math.min(companiesAtOnce, left.length + slices.length);
  await Promise.all(Array.from({ length: lanes }, lane));
}

const fromItsStart = (companyId: string): CompanyLeft => ({ companyId, cursor: null });

/** Reads a slice. If the activity fails, all companies of the slice count as not finished. */
async function readSlice(runId: string, companies: readonly string[]): Promise<SliceRead> {
  try {
    return await backfilling.readCompanies({ runId, companies });
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return { left: companies.map(fromItsStart) };
  }
}

/**
 * Reads a company in workflows of its own, one after the other. If another run is reading the company, waits
 * for it first: what that run reads began too early to count for this run.
 */
async function readToItsEnd(runId: string, { companyId, cursor }: CompanyLeft): Promise<void> {
  try {
    let step: CompanyStep = { done: false, cursor };
    while (!step.done) {
      const read = await readInItsWorkflow({ runId, companyId, cursor: step.cursor });
      if (read === 'busy') await waiting.awaitTurn({ companyId });
      else step = read;
    }
  } catch (error) {
    const expected = error instanceof ActivityFailure || error instanceof ChildWorkflowFailure;
    // An operator may cancel the workflow of one company. The others continue.
    const isCancelled = isCancellation(error);
    const onlyThisCompany =
      isCancelled && !CancellationScope.current().consideredCancelled && patched('cancelled-alone');
    if (!expected || (isCancelled && !onlyThisCompany)) throw error;
    await noting.giveUpCompany({ runId, companyId, error: reasonOf(error) });
  }
}

async function readInItsWorkflow(reading: CompanyReading): Promise<CompanyStep | 'busy'> {
  try {
    const step: CompanyStep | undefined = await executeChild(backfillCompany, {
      workflowId: workflowIds.backfillCompany(reading.companyId),
      taskQueue: taskQueues.backfill,
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      args: [{ ...reading, inParts: true }],
    });
    // Version 0.1.0 read a company to its end, and returned nothing.
    return step ?? { done: true, cursor: null };
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return 'busy';
    throw error;
  }
}

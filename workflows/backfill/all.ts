import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ActivityFailure,
  CancellationScope,
  ChildWorkflowFailure,
  condition,
  continueAsNew,
  defineQuery,
  executeChild,
  isCancellation,
  ParentClosePolicy,
  patched,
  setHandler,
  uuid4,
} from '@temporalio/workflow';
import type { CompanyStep } from '../../activities/backfill/backfill.ts';
import type { CompanyLeft } from '../../activities/backfill/together.ts';
import { backfillBounds } from '../../contract/limits.ts';
import { checkKinds, queryNames, type RunState, taskQueues, workflowIds } from '../../contract/names.ts';
import { backfilling, noting, waiting } from '../activity-options.ts';
import { startChecks } from '../start-checks.ts';
import { backfillCompany, reasonOf } from './company.ts';

/** The warehouse says which companies to read: those chosen for the run; all of them if none are chosen. */
export interface BackfillInput {
  /** Absent when a schedule starts it. */
  readonly runId?: string;
  /** Set when a long run continues as new. */
  readonly after?: {
    /** The last company that the run before examined, and how many companies were read. */
    readonly companyId: string;
    readonly done: number;
    /** Whether the list of companies was read. */
    readonly listed: boolean;
  };
}

export interface BackfillProgress {
  readonly runId: string;
  readonly companiesDone: number;
  readonly companiesRunning: readonly string[];
}

export const backfillProgress = defineQuery<BackfillProgress>(queryNames.progress);

/** Reads all companies, some at a time; returns how the run ended. */
export async function backfillAll(input: BackfillInput = {}): Promise<RunState> {
  const runId = input.runId ?? uuid4();
  const running = new Set<string>();
  let done = input.after?.done ?? 0;
  setHandler(backfillProgress, () => ({ runId, companiesDone: done, companiesRunning: [...running] }));

  const readCompany = async ({ companyId, cursor }: CompanyLeft): Promise<void> => {
    running.add(companyId);
    await readWhenFree(runId, companyId, cursor);
    running.delete(companyId);
    done += 1;
  };

  /** Returns the companies that are left to be read alone. */
  const readTogether = async (companies: readonly string[]): Promise<readonly CompanyLeft[]> => {
    for (const companyId of companies) running.add(companyId);
    const left = await readSmall(runId, companies);
    for (const companyId of companies) running.delete(companyId);
    done += companies.length - left.length;
    return left;
  };

  try {
    const { listed } = input.after ?? (await backfilling.beginRun({ runId }));
    const after = input.after?.companyId ?? null;
    const next = { runId, after, limit: backfillBounds.companiesPerRun, listed };
    const { companies, last } = await backfilling.nextCompanies(next);
    const [only] = companies;
    if (only !== undefined && companies.length === 1) await readCompany({ companyId: only, cursor: null });
    else await readAll(companies, readTogether, readCompany);
    if (last !== null)
      await continueAsNew<typeof backfillAll>({ runId, after: { companyId: last, done, listed } });
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
 * Reads companies, `companiesAtOnce` at a time. Each activity reads some of them. A company that is large,
 * fails, or is being read by another run is then read by a workflow of its own.
 */
async function readAll(
  ids: readonly string[],
  together: (companies: readonly string[]) => Promise<readonly CompanyLeft[]>,
  alone: (company: CompanyLeft) => Promise<void>,
): Promise<void> {
  const { companiesAtOnce, companiesTogether } = backfillBounds;
  const size = Math.min(companiesTogether, Math.ceil(ids.length / companiesAtOnce));
  const chunks = Array.from({ length: Math.ceil(ids.length / size) }, (_, at) =>
    ids.slice(at * size, (at + 1) * size),
  );
  const left: CompanyLeft[] = [];
  let chunksRunning = 0;
  const worker = async (): Promise<void> => {
    for (;;) {
      const company = left.shift();
      const chunk = company === undefined ? chunks.shift() : undefined;
      if (company !== undefined) await alone(company);
      else if (chunk !== undefined) {
        chunksRunning += 1;
        left.push(...(await together(chunk)));
        chunksRunning -= 1;
      } else if (chunksRunning === 0) return;
      else await condition(() => left.length > 0 || chunksRunning === 0);
    }
  };
  await Promise.all(Array.from({ length: Math.min(companiesAtOnce, chunks.length) }, worker));
}

/** Reads companies in one activity. Returns those that it left; all of them if it failed. */
async function readSmall(runId: string, companies: readonly string[]): Promise<readonly CompanyLeft[]> {
  try {
    return (await backfilling.readCompanies({ runId, companies })).left;
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return companies.map((companyId) => ({ companyId, cursor: null }));
  }
}

/**
 * Reads a company, after any other run that is reading it. That run's read began too early to count for this
 * one.
 */
async function readWhenFree(runId: string, companyId: string, cursor: CompanyLeft['cursor']): Promise<void> {
  try {
    let step: CompanyStep = { done: false, cursor };
    while (!step.done) {
      const read = await readUnlessBusy(runId, companyId, step.cursor);
      if (read === undefined) await waiting.awaitTurn({ companyId });
      else step = read;
    }
  } catch (error) {
    const expected = error instanceof ActivityFailure || error instanceof ChildWorkflowFailure;
    // An operator may cancel the workflow of one company: the others go on.
    const isCancelled = isCancellation(error);
    const isAlone =
      isCancelled && !CancellationScope.current().consideredCancelled && patched('cancelled-alone');
    if (!expected || (isCancelled && !isAlone)) throw error;
    await noting.giveUpCompany({ runId, companyId, error: reasonOf(error) });
  }
}

/** Reads a company, or a part of a very large one; undefined when another run is reading it. */
async function readUnlessBusy(
  runId: string,
  companyId: string,
  cursor: CompanyLeft['cursor'],
): Promise<CompanyStep | undefined> {
  try {
    const step: CompanyStep | undefined = await executeChild(backfillCompany, {
      workflowId: workflowIds.backfillCompany(companyId),
      taskQueue: taskQueues.backfill,
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      args: [{ runId, companyId, inParts: true, ...(cursor === null ? {} : { cursor }) }],
    });
    // An older version returned nothing.
    return step ?? { done: true, cursor: null };
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return undefined;
    throw error;
  }
}

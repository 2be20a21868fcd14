import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ActivityFailure,
  CancellationScope,
  ChildWorkflowFailure,
  continueAsNew,
  defineQuery,
  executeChild,
  isCancellation,
  ParentClosePolicy,
  patched,
  setHandler,
  sleep,
  uuid4,
} from '@temporalio/workflow';
import { checkKinds, queryNames, type RunState, taskQueues, workflowIds } from '../contract/names.ts';
import { backfillCompany, reasonOf } from './backfill-company.ts';
import { backfillBounds, backfilling, companyBusy, noting, waiting } from './proxies.ts';
import { someAtOnce } from './some-at-once.ts';
import { startChecks } from './start-checks.ts';

export interface BackfillInput {
  /** Absent when a schedule starts it. */
  readonly runId?: string;
  /** The companies to read; all that are known when absent. */
  readonly companies?: readonly string[];
  /** Set when a long run continues as new: the last company of the run before, and how many it had done. */
  readonly after?: { readonly companyId: string; readonly done: number };
}

export interface BackfillProgress {
  readonly runId: string;
  /** Companies that it was asked to read; null for all. */
  readonly chosen: number | null;
  readonly companiesDone: number;
  readonly companiesRunning: readonly string[];
}

export const backfillProgress = defineQuery<BackfillProgress>(queryNames.progress);

/** Reads everything that the service has, some companies at a time; returns how the run ended. */
export async function backfillAll(input: BackfillInput = {}): Promise<RunState> {
  const runId = input.runId ?? uuid4();
  const running = new Set<string>();
  let done = input.after?.done ?? 0;
  const chosen = input.companies?.length ?? null;
  setHandler(backfillProgress, () => ({
    ...{ runId, chosen, companiesDone: done, companiesRunning: [...running] },
  }));

  const readCompany = async (companyId: string): Promise<void> => {
    running.add(companyId);
    await readWhenFree(runId, companyId);
    running.delete(companyId);
    done += 1;
  };

  try {
    if (input.after === undefined) await backfilling.beginRun({ runId, companies: input.companies ?? [] });
    const after = input.after?.companyId ?? null;
    const ids =
      input.companies ?? (await noting.companiesAfter({ after, limit: backfillBounds.companiesPerRun }));
    await someAtOnce(ids, backfillBounds.companiesAtOnce, readCompany);
    const last = ids.at(-1);
    if (
      input.companies === undefined &&
      last !== undefined &&
      ids.length === backfillBounds.companiesPerRun
    ) {
      await continueAsNew<typeof backfillAll>({ runId, after: { companyId: last, done } });
    }
    const state = await noting.concludeRun({ runId });
    await startChecks({ runId, kinds: checkKinds, companies: input.companies });
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

/** A company is read by one run at a time: another run waits for its turn, as it promised a fresh read. */
async function readWhenFree(runId: string, companyId: string): Promise<void> {
  try {
    for (let tries = 1; ; tries++) {
      const busy = await readUnlessBusy(runId, companyId);
      if (busy === undefined) return;
      await untilFree(companyId, tries, busy);
    }
  } catch (error) {
    if (isCancellation(error)) throw error;
    const expected = [ActivityFailure, ChildWorkflowFailure, WorkflowExecutionAlreadyStartedError];
    if (!(error instanceof Error) || !expected.some((type) => error instanceof type)) throw error;
    const reason = error instanceof ActivityFailure ? reasonOf(error) : String(error.cause ?? error);
    await noting.failRun({ runId, companyId, resource: 'connections', error: reason });
  }
}

/** Returns what Temporal says when another run is reading the company. */
async function readUnlessBusy(
  runId: string,
  companyId: string,
): Promise<WorkflowExecutionAlreadyStartedError | undefined> {
  try {
    await executeChild(backfillCompany, {
      workflowId: workflowIds.backfillCompany(companyId),
      taskQueue: taskQueues.backfill,
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      args: [{ runId, companyId }],
    });
    return undefined;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return error;
    throw error;
  }
}

async function untilFree(companyId: string, tries: number, busy: Error): Promise<void> {
  // Runs of before looked every few seconds, which filled their histories.
  if (patched('an activity awaits the turn')) await waiting.awaitTurn({ companyId });
  else if (tries < companyBusy.triesMax) await sleep(companyBusy.everyMs);
  else throw busy;
}

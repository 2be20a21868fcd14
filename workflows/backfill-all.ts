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
  sleep,
  uuid4,
} from '@temporalio/workflow';
import type { CompanyLeft } from '../activities/backfill-together.ts';
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

  const readCompany = async ({ companyId, cursor }: CompanyLeft): Promise<void> => {
    running.add(companyId);
    await readWhenFree(runId, companyId, cursor);
    running.delete(companyId);
    done += 1;
  };

  /** Returns those that are left to be read alone. */
  const readTogether = async (companies: readonly string[]): Promise<readonly CompanyLeft[]> => {
    for (const companyId of companies) running.add(companyId);
    const left = await readSmall(runId, companies);
    for (const companyId of companies) running.delete(companyId);
    done += companies.length - left.length;
    return left;
  };

  try {
    const refused = input.after === undefined ? await begin(runId, input.companies) : [];
    const after = input.after?.companyId ?? null;
    const ids =
      input.companies?.filter((id) => !refused.includes(id.toLowerCase())) ??
      (await noting.companiesAfter({ after, limit: backfillBounds.companiesPerRun }));
    // Runs of before gave each company a workflow of its own.
    if (ids.length > 1 && patched('small companies are read together'))
      await readAll(ids, readTogether, readCompany);
    else
      await someAtOnce(
        ids.map((companyId) => ({ companyId, cursor: null })),
        backfillBounds.companiesAtOnce,
        readCompany,
      );
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

/** Returns companies that the service does not have; workers of before told of none. */
async function begin(runId: string, companies: readonly string[] = []): Promise<readonly string[]> {
  const begun: { readonly refused: readonly string[] } | undefined | null = await backfilling.beginRun({
    ...{ runId, companies },
  });
  return begun?.refused ?? [];
}

async function fail(runId: string, error: string): Promise<RunState> {
  await noting.failRun({ runId, companyId: null, resource: null, error });
  return 'failed';
}

/**
 * Reads companies, so many at once: first some together, in one activity each; then, in a workflow of its own, each that
 * proves large, fails, or is being read by another run.
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

/** Reads companies in one activity; returns those that it left: all of them, where it could not go on. */
async function readSmall(runId: string, companies: readonly string[]): Promise<readonly CompanyLeft[]> {
  try {
    return (await backfilling.readCompanies({ runId, companies })).left;
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return companies.map((companyId) => ({ companyId, cursor: null }));
  }
}

/** A company is read by one run at a time: another run waits for its turn, as it promised a fresh read. */
async function readWhenFree(runId: string, companyId: string, cursor: CompanyLeft['cursor']): Promise<void> {
  try {
    for (let tries = 1; ; tries++) {
      const busy = await readUnlessBusy(runId, companyId, cursor);
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
  cursor: CompanyLeft['cursor'],
): Promise<WorkflowExecutionAlreadyStartedError | undefined> {
  try {
    await executeChild(backfillCompany, {
      workflowId: workflowIds.backfillCompany(companyId),
      taskQueue: taskQueues.backfill,
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      args: [cursor === null ? { runId, companyId } : { runId, companyId, cursor }],
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

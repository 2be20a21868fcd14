import { Context } from '@temporalio/activity';
import type { RunKind, RunState } from '../contract/names.ts';
import { concludeRun, failPartsLeft, failRunAndParts, runsUnderWay } from '../db/backfill/run-end.ts';
import { finishRun, type RunKey, startRun } from '../db/backfill/runs.ts';
import { sqlMessage } from '../db/connection/failures.ts';
import { settleHeld } from '../db/deletes/decide.ts';
import { applyTypedViews } from '../db/fields/typed-views.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { checkEndpoints } from './gates.ts';
import { mapFailures } from './map-failures.ts';

export function runActivities(deps: ActivityDependencies) {
  const { db } = deps.warehouse;
  return {
    /** Fails a run, with its unfinished parts. */
    failRun: mapFailures(
      async ({ runId, kind, error }: { runId: string; kind: RunKind; error: string }): Promise<void> => {
        await noteRunStart(deps, runId, kind);
        await failRunAndParts(db, runId, error);
      },
    ),

    concludeRun: mapFailures(async (input: { runId: string }): Promise<RunState> => {
      await settleHeld(db);
      await checkEndpoints(deps);
      // Before the run counts as complete: whoever waits for it may ask for the new columns.
      await applyViews(deps);
      return await concludeRun(db, input.runId);
    }),

    /** Fails runs whose workflow ended without noting it: terminated, timed out, or lost by Temporal. */
    endLostRuns: mapFailures(async (_: object): Promise<void> => {
      for (const { runId, workflowId } of await runsUnderWay(db)) {
        const ended = workflowId === null ? 'gone' : await endOf(deps, workflowId);
        if (ended === undefined) continue;
        deps.log.warn({ runId, workflowId, ended }, 'the workflow of a run ended without noting it');
        await failRunAndParts(db, runId, ended);
      }
      await failPartsLeft(db);
    }),
  };
}

/** Gives fields that a run found their columns. The run ends well without them. */
async function applyViews({ warehouse, log }: ActivityDependencies): Promise<void> {
  try {
    const { applied, blocked } = await applyTypedViews(warehouse.db);
    if (applied.length > 0) log.info({ views: applied.length }, 'typed views were applied');
    for (const view of blocked) log.warn({ ...view }, 'a typed view could not be replaced');
  } catch (error) {
    log.warn(
      { error: sqlMessage(error) },
      'typed views were not applied: run metersync views apply as the owner of the warehouse',
    );
  }
}

/** Returns how a workflow ended; undefined while it runs or Temporal cannot say, and it is asked again. */
async function endOf(
  { howEnded, log }: ActivityDependencies,
  workflowId: string,
): Promise<string | undefined> {
  try {
    return await howEnded(workflowId);
  } catch (error) {
    log.warn({ err: error, workflowId }, 'Temporal does not say whether the workflow of a run goes on');
    return undefined;
  }
}

/** Notes the start of a run, with the workflow that runs it. */
export async function noteRunStart(
  { warehouse }: ActivityDependencies,
  runId: string,
  kind: RunKind,
): Promise<void> {
  const workflowId = Context.current().info.workflowExecution?.workflowId;
  await startRun(warehouse.db, { runId, companyId: null, resource: null }, { kind, workflowId });
}

export async function failPart(
  { warehouse }: ActivityDependencies,
  key: RunKey,
  error: string,
  kind?: RunKind,
): Promise<void> {
  await startRun(warehouse.db, key, { kind });
  await finishRun(warehouse.db, key, 'failed', { error });
}

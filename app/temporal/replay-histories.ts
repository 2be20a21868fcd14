import v8 from 'node:v8';
import type { Client } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import { Worker, type WorkflowBundleOption } from '@temporalio/worker';
import { workflowNames } from '../../contract/names.ts';

type History = Parameters<typeof Worker.runReplayHistory>[1];

/** A workflow whose history the code cannot replay. If this code ran it, the workflow would be stuck. */
export interface NotReplayed {
  readonly workflowId: string;
  readonly type: string;
  readonly why: string;
}

export interface Replayed {
  readonly histories: number;
  readonly failures: readonly NotReplayed[];
}

/** Replays workflows on a bundle, at most `most` of each type: running, or any that Temporal has kept. */
export async function replayHistories(
  client: Client,
  options: {
    readonly workflowBundle: WorkflowBundleOption;
    readonly dataConverter?: DataConverter;
    readonly which: 'running' | 'any';
    readonly most: number;
  },
): Promise<Replayed> {
  const { workflowBundle, dataConverter = {}, which, most } = options;
  const types = new Map<string, string>();
  async function* histories() {
    for (const type of Object.values(workflowNames)) {
      const running = which === 'running' ? ` and ExecutionStatus = 'Running'` : '';
      const listed = client.workflow.list({ query: `WorkflowType = '${type}'${running}` });
      let read = 0;
      for await (const { workflowId, runId } of listed) {
        const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
        types.set(workflowId, type);
        yield { workflowId, history: history as History };
        if (++read === most) break;
      }
    }
  }
  const failures: NotReplayed[] = [];
  const hooksAgain = stopPromiseHooks();
  try {
    for await (const { workflowId, error } of Worker.runReplayHistories(
      { workflowBundle, dataConverter },
      histories(),
    ))
      if (error !== undefined)
        failures.push({ workflowId, type: types.get(workflowId) ?? '', why: error.message });
  } finally {
    hooksAgain();
  }
  return { histories: types.size, failures };
}

/**
 * Keeps Temporal from noting a stack trace for each promise of the process. They answer a query that nobody
 * sends to a replay, and take half of its time.
 * @returns a function that ends this
 */
function stopPromiseHooks(): () => void {
  const { createHook } = v8.promiseHooks;
  v8.promiseHooks.createHook = () => () => {};
  return () => {
    v8.promiseHooks.createHook = createHook;
  };
}

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { bundleWorkflows } from '../../app/workflow-bundle.ts';
import { taskQueues, workflowNames } from '../../contract/names.ts';
import { startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';

const { History } = proto.temporal.api.history.v1;
const folder = fileURLToPath(new URL('./histories/', import.meta.url));
const types = Object.values(workflowNames);
const recording = process.env.RECORD_HISTORIES === '1';

/**
 * Histories recorded from earlier code are replayed on today's: a change that would break runs in flight fails here,
 * before it is deployed. `RECORD_HISTORIES=1 npm test -- test/workflows` records them anew, after a change that is
 * meant to break them.
 */
describe('replay', () => {
  if (recording)
    test('histories are recorded from a real run', async () => {
      const pipeline = await startPipeline();
      try {
        expect(await pipeline.backfill()).toBe('complete');
        await pipeline.service.random(60, 11);
        await pipeline.settled();
        await pipeline.client.workflow.execute(workflowNames.wakeCatchUps, {
          workflowId: 'recorded-wake',
          taskQueue: taskQueues.events,
        });
        await pipeline.client.workflow.execute(workflowNames.dropPayloads, {
          workflowId: 'recorded-drop',
          taskQueue: taskQueues.backfill,
        });
        await pipeline.client.workflow.execute(workflowNames.reconcile, {
          ...{ workflowId: 'recorded-reconcile', taskQueue: taskQueues.backfill, args: [{}] },
        });
        for (const type of types)
          writeFileSync(`${folder}${type}.history.pb`, await longest(pipeline.client, type));
      } finally {
        await pipeline.stop();
      }
    });

  test('every workflow has a recorded history', () => {
    expect(readdirSync(folder).sort()).toEqual(types.map((type) => `${type}.history.pb`).sort());
  });

  test('every recorded history replays on the code of today', async () => {
    const workflowBundle = await bundleWorkflows(pino({ level: 'silent' }));
    const histories = types.map((type) => ({
      workflowId: type,
      history: History.decode(readFileSync(`${folder}${type}.history.pb`)),
    }));
    const failures: unknown[] = [];
    let replayed = 0;
    for await (const result of Worker.runReplayHistories({ workflowBundle }, histories)) {
      replayed += 1;
      if (result.error !== undefined) failures.push([result.workflowId, result.error]);
    }
    expect({ failures, replayed }).toEqual({ failures: [], replayed: types.length });
  });
});

/** The longest of a type's histories, as it is on the wire: the one that exercised most of its code. */
async function longest(client: Client, type: string): Promise<Uint8Array> {
  const executions = await until(`a ${type} is listed`, async () => {
    const listed: { workflowId: string; runId: string }[] = [];
    for await (const execution of client.workflow.list({ query: `WorkflowType = '${type}'` }))
      listed.push(execution);
    return listed.length > 0 ? listed : undefined;
  });
  const histories = await Promise.all(
    executions
      .slice(0, 20)
      .map(({ workflowId, runId }) => client.workflow.getHandle(workflowId, runId).fetchHistory()),
  );
  histories.sort((a, b) => (b.events?.length ?? 0) - (a.events?.length ?? 0));
  const [first] = histories;
  if (first === undefined) throw new Error(`no history of ${type}`);
  return History.encode(first).finish();
}

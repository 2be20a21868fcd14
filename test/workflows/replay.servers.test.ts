import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import proto from '@temporalio/proto';
import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { workflowBundle as bundleOfToday } from '../../app/temporal/workflow-bundle.ts';
import { taskQueues, workflowNames } from '../../contract/names.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';

const { History } = proto.temporal.api.history.v1;
const folder = fileURLToPath(new URL('./histories/', import.meta.url));
const types = Object.values(workflowNames).filter((type) => type !== workflowNames.catchUp);

/** Histories of version 0.2, whose workflows may run during an update. They are never recorded again. */
const earlier = ['applyEvents', 'applyEvents.long', 'catchUp', 'catchUp.long', 'watch'].map(
  (name) => `${name}.0.2`,
);
const names = [...types, ...earlier];

/**
 * Replays histories of earlier code on the current code: a change that would break running workflows fails
 * here. After an intended one, `RECORD_HISTORIES=1 npm test -- test/workflows` records them again.
 */
describe('replay', () => {
  if (process.env.RECORD_HISTORIES === '1')
    describe('histories are recorded from real runs', () => {
      let pipeline: Pipeline;
      beforeAll(async () => {
        pipeline = await startPipeline({});
      });
      afterAll(() => pipeline.stop());

      test('of each type', { timeout: 120_000 }, async () => {
        expect(await pipeline.backfill()).toBe('complete');
        await pipeline.service.random(60, 11);
        await pipeline.settled();
        await execute(pipeline, workflowNames.watch, taskQueues.backfill);
        await execute(pipeline, workflowNames.dropPayloads, taskQueues.backfill);
        await execute(pipeline, workflowNames.backfillUpdates, taskQueues.backfill);
        for (const type of types) await write(type, await longest(pipeline.client, type));
      });
    });

  test('every workflow has a recorded history', () => {
    expect(readdirSync(folder).sort()).toEqual(names.map((name) => `${name}.history.pb.gz`).sort());
  });

  test('every recorded history replays on the current code', async () => {
    const workflowBundle = await bundleOfToday(pino({ level: 'silent' }));
    const histories = await Promise.all(
      names.map(async (name) => ({ workflowId: name, history: await read(name) })),
    );
    const failures: unknown[] = [];
    let replayed = 0;
    for await (const result of Worker.runReplayHistories({ workflowBundle }, histories)) {
      replayed += 1;
      if (result.error !== undefined) failures.push([result.workflowId, result.error]);
    }
    expect({ failures, replayed }).toEqual({ failures: [], replayed: names.length });
  });
});

const zip = promisify(gzip);
const unzip = promisify(gunzip);
const pathOf = (name: string): string => `${folder}${name}.history.pb.gz`;
const read = async (name: string) => History.decode(await unzip(readFileSync(pathOf(name))));
const write = async (name: string, history: Uint8Array) => writeFileSync(pathOf(name), await zip(history));

async function execute(
  { client }: Pipeline,
  type: string,
  taskQueue: string,
  ...args: unknown[]
): Promise<unknown> {
  return await client.workflow.execute(type, { workflowId: `recorded-${type}`, taskQueue, args });
}

/** Returns the longest history of a type, which exercised most of the code, encoded as on the wire. */
async function longest(client: Client, type: string): Promise<Uint8Array> {
  const executions = await until(`a ${type} is listed`, async () => {
    const listed: WorkflowExecutionInfo[] = [];
    for await (const execution of client.workflow.list({ query: `WorkflowType = '${type}'` }))
      listed.push(execution);
    return listed.length > 0 ? listed : undefined;
  });
  // Open workflows have no length yet.
  executions.sort((a, b) => (b.historyLength || Infinity) - (a.historyLength || Infinity));
  const histories = await Promise.all(
    executions
      .slice(0, 5)
      .map(({ workflowId, runId }) => client.workflow.getHandle(workflowId, runId).fetchHistory()),
  );
  histories.sort((a, b) => (b.events?.length ?? 0) - (a.events?.length ?? 0));
  const [first] = histories;
  if (first === undefined) throw new Error(`no history of ${type}`);
  return History.encode(first).finish();
}

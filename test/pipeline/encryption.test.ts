import { randomBytes } from 'node:crypto';
import proto from '@temporalio/proto';
import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import type { CodecKey } from '../../app/payload-codec.ts';
import { connectClient, dataConverterOf } from '../../app/temporal.ts';
import { bundleWorkflows } from '../../app/workflow-bundle.ts';
import { workflowIds } from '../../contract/names.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';

const { History } = proto.temporal.api.history.v1;
const older: CodecKey = { id: 'older', key: randomBytes(32) };
const newer: CodecKey = { id: 'newer', key: randomBytes(32) };
const under = (...keys: readonly CodecKey[]) => ({
  TEMPORAL_CODEC_KEYS: keys.map(({ id, key }) => `${id}:${key.toString('base64')}`).join(','),
});

/** The pipeline's own client in tests has no keys: it sees what Temporal has on disk. */
let pipeline: Pipeline;
beforeAll(async () => {
  pipeline = await startPipeline({ size: { companies: 2, documents: 10 }, parts: [] });
  await Promise.all([pipeline.start('worker', under(older)), pipeline.start('receiver', under(older))]);
}, 120_000);
afterAll(() => pipeline?.stop());

/** Histories of groups of events and of runs of backfills. */
async function histories() {
  const found = [];
  for await (const { workflowId, runId } of pipeline.client.workflow.list()) {
    if (!/^(events?|backfill-run)\//.test(workflowId)) continue;
    const history = await pipeline.client.workflow.getHandle(workflowId, runId).fetchHistory();
    found.push({ workflowId, runId, history });
  }
  return found;
}

test('a history holds no payload in plain text; events and backfills flow as they do without', {
  timeout: 180_000,
}, async () => {
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = pipeline.env;
  const { client, close } = await connectClient({ address, namespace, codecKeys: [older] });
  const runId = await startBackfill(client);
  expect(await client.workflow.getHandle(workflowIds.backfillAll(runId)).result()).toBe('complete');
  await close();
  await pipeline.service.random(40, 8);
  await pipeline.settled();
  expect((await pipeline.audit()).differences).toBe(0);

  const all = await until('groups of events are listed', async () => {
    const listed = await histories();
    return listed.some(({ workflowId }) => workflowId.startsWith('event')) ? listed : undefined;
  });
  for (const { workflowId, history } of all) {
    const bytes = Buffer.from(History.encode(history).finish());
    for (const word of ['receivedAt', 'eventType', 'publicId', 'newCompanies']) {
      expect(bytes.includes(word), `${workflowId} holds ${word}`).toBe(false);
    }
    expect(bytes.includes('encryption-key-id'), workflowId).toBe(true);
  }
});

test('an encrypted history replays with its key among others', { timeout: 120_000 }, async () => {
  const workflowBundle = await bundleWorkflows(pino({ level: 'silent' }));
  const some = await histories();
  const failures: unknown[] = [];
  let replayed = 0;
  const dataConverter = dataConverterOf({ codecKeys: [newer, older] });
  for await (const { error } of Worker.runReplayHistories({ workflowBundle, dataConverter }, some)) {
    replayed += 1;
    if (error !== undefined) failures.push(error);
  }
  expect({ failures, replayed }).toEqual({ failures: [], replayed: some.length });
  expect(replayed).toBeGreaterThan(1);
});

test('keys rotate while events come; a worker that lacks a key says which, and what it could not read waits', {
  timeout: 240_000,
}, async () => {
  const { service } = pipeline;
  const restart = async (part: 'worker' | 'receiver', ...keys: readonly CodecKey[]) => {
    await pipeline.part(part).end('SIGTERM');
    return await pipeline.start(part, under(...keys));
  };
  await restart('worker', newer, older);
  await restart('receiver', newer, older);
  await service.random(20, 9);
  await pipeline.settled();

  const lacking = await restart('worker', older);
  await service.random(5, 10);
  await lacking.printed(/under the key .{0,2}newer.{0,2}: add it to TEMPORAL_CODEC_KEYS/, 60_000);
  await restart('worker', newer, older);
  await pipeline.settled(120_000);
  expect((await pipeline.audit()).differences).toBe(0);
});

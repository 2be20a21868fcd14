import { randomBytes, randomUUID } from 'node:crypto';
import { ScheduleOverlapPolicy } from '@temporalio/client';
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import proto from '@temporalio/proto';
import { Worker } from '@temporalio/worker';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import type { Running } from '../../app/process/running.ts';
import { connectClient, dataConverterOf } from '../../app/temporal/client.ts';
import type { CodecKey } from '../../app/temporal/payload-codec.ts';
import { workflowBundle as bundleOf } from '../../app/temporal/workflow-bundle.ts';
import { scheduleIds, taskQueues, workflowIds, workflowNames } from '../../contract/names.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';

const { History } = proto.temporal.api.history.v1;
const older: CodecKey = { id: 'older', key: randomBytes(32) };
const newer: CodecKey = { id: 'newer', key: randomBytes(32) };
const under = (...keys: readonly CodecKey[]) => ({
  TEMPORAL_CODEC_KEYS: keys.map(({ id, key }) => `${id}:${key.toString('base64')}`).join(','),
});

let worker: Running;
let receiver: Running;
/** The client of this pipeline has no keys, so it sees payloads as Temporal has them on disk. */
const pipeline = await forFile(startPipeline({ size: { companies: 2, documents: 10 }, parts: [] }));
[worker, receiver] = await Promise.all([
  pipeline.run('worker', under(older)),
  pipeline.run('receiver', under(older)),
]);

/** Lists the histories of event groups and backfill runs. */
async function histories() {
  const found = [];
  for await (const { workflowId, runId } of pipeline.client.workflow.list()) {
    if (!/^(events?|backfill-run)\//.test(workflowId)) continue;
    const history = await pipeline.client.workflow.getHandle(workflowId, runId).fetchHistory();
    found.push({ workflowId, runId, history });
  }
  return found;
}

test('with codec keys, histories contain no plaintext payload, and events and backfills work', {
  timeout: 180_000,
}, async () => {
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = pipeline.env;
  const { client, close } = await connectClient({ address, namespace, codecKeys: [older] });
  const runId = await startBackfill(client);
  expect(await client.workflow.getHandle(workflowIds.backfill(runId)).result()).toBe('complete');
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

test('each run of a schedule reads the result of the previous run', {
  timeout: 120_000,
}, async () => {
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = pipeline.env;
  const { client, close } = await connectClient({ address, namespace, codecKeys: [older] });
  onTestFinished(close);
  const schedule = client.schedule.getHandle(scheduleIds.watch);
  const results = async () => {
    const { info } = await schedule.describe();
    return info.recentActions.map(({ action }) => action.workflow);
  };
  for (const runs of [1, 2]) {
    await schedule.trigger(ScheduleOverlapPolicy.BUFFER_ALL);
    await until(`${runs} runs were started`, async () => (await results()).length >= runs);
    for (const { workflowId, firstExecutionRunId } of await results()) {
      await client.workflow.getHandle(workflowId, firstExecutionRunId).result();
    }
    // The names of runs contain the time in seconds, so two runs need different seconds.
    await until('a second is over', async () => {
      const last = (await results()).at(-1)?.workflowId ?? '';
      return Date.now() >= Date.parse(last.slice(-20)) + 1_000;
    });
  }
});

test('an encrypted history is replayed if its key is one of several keys', { timeout: 120_000 }, async () => {
  const workflowBundle = await bundleOf(pino({ level: 'silent' }));
  const recorded = await histories();
  const failures: unknown[] = [];
  let replayed = 0;
  const dataConverter = dataConverterOf({ codecKeys: [newer, older] });
  for await (const { error } of Worker.runReplayHistories({ workflowBundle, dataConverter }, recorded)) {
    replayed += 1;
    if (error !== undefined) failures.push(error);
  }
  expect({ failures, replayed }).toEqual({ failures: [], replayed: recorded.length });
  expect(replayed).toBeGreaterThan(1);
});

test('keys can be rotated while events arrive, and the work of a worker that lacks a key waits and names the key', {
  timeout: 240_000,
}, async () => {
  const { service } = pipeline;
  await worker.stop();
  worker = await pipeline.run('worker', under(newer, older));
  await receiver.stop();
  receiver = await pipeline.run('receiver', under(newer, older));
  await service.random(20, 9);
  await pipeline.settled();

  await worker.stop();
  const lacking = await pipeline.start('worker', under(older));
  await service.random(5, 10);
  await lacking.printed(/under the key .{0,2}newer.{0,2}: add it to TEMPORAL_CODEC_KEYS/, 60_000);
  await lacking.end('SIGTERM');
  await pipeline.start('worker', under(newer, older));
  await pipeline.settled(120_000);
  expect((await pipeline.audit()).differences).toBe(0);
});

/** Starts a workflow as somebody does who can reach Temporal but has no key. */
async function forge(workflowId: string, ...payloads: Payload[]): Promise<void> {
  await pipeline.client.workflowService.startWorkflowExecution({
    namespace: pipeline.client.options.namespace,
    workflowId,
    workflowType: { name: workflowNames.applyEvents },
    taskQueue: { name: taskQueues.events },
    input: { payloads },
    requestId: randomUUID(),
  });
}

async function recorded(eventId: string): Promise<boolean> {
  const { rows } = await pipeline.warehouse.db.execute(
    sql`select from metersync.events where id = ${eventId}`,
  );
  return rows.length > 0;
}

/** Waits until a worker fails the workflow's task, and returns the message of the failure. */
async function whyItWaits(workflowId: string): Promise<string> {
  return await until(`a worker refuses ${workflowId}`, async () => {
    const { events } = await pipeline.client.workflow.getHandle(workflowId).fetchHistory();
    return events?.findLast((event) => event.workflowTaskFailedEventAttributes)
      ?.workflowTaskFailedEventAttributes?.failure?.message;
  });
}

const forgedGroup = () => {
  const event = delivery(documentEvent('created', randomUUID(), '2026-01-02T00:00:00.000001'));
  return { event, payload: defaultPayloadConverter.toPayload({ events: [event] }) };
};

test('a forged group is reported but never recorded, and does not delay other groups', {
  timeout: 240_000,
}, async () => {
  const { service, client } = pipeline;
  const bare = forgedGroup();
  await service.random(5, 11);
  const genuine = await until('a group of events is listed', async () =>
    (await histories()).find(({ workflowId }) => workflowId.startsWith('event')),
  );
  const moved = genuine.history.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
  await forge('event/bare/1', bare.payload);
  await forge('event/moved/1', ...moved);
  expect(await whyItWaits('event/bare/1')).toMatch(/for event\/bare\/1 is not encrypted/);
  expect(await whyItWaits('event/moved/1')).toMatch(/for event\/moved\/1 was encrypted for another/);
  await pipeline.part('worker').printed(/PAYLOAD_REFUSED.*event\/bare\/1|event\/bare\/1.*PAYLOAD_REFUSED/);

  await service.random(20, 12);
  await until('the service has delivered everything', async () => (await service.status()).quiet);
  const acknowledged = await service.delivered();
  for (const id of acknowledged) await until(`event ${id} is recorded`, () => recorded(id));
  expect(await recorded(bare.event.id)).toBe(false);

  // A group from a receiver without keys looks the same, and its events can be accepted later.
  await pipeline.part('worker').end('SIGTERM');
  await pipeline.run('worker', { ...under(newer, older), TEMPORAL_PLAINTEXT: 'accepted' });
  await until('what is bare is recorded', () => recorded(bare.event.id), { timeoutMs: 120_000 });
  await client.workflow.getHandle('event/moved/1').terminate();
});

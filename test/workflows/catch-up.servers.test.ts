import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { wakeOf } from '../../app/temporal/temporal.ts';
import { workflowBundle } from '../../app/temporal/workflow-bundle.ts';
import { signalNames, taskQueues, workflowIds } from '../../contract/names.ts';
import { until } from '../support/poll.ts';
import { withStubs } from '../support/stub-worker.ts';

test('a catch-up that waits while the service is parked continues as new before its history is too long', async () => {
  let looks = 0;
  const parked = {
    dueOwners: async () => {
      looks += 1;
      return [];
    },
    trySleep: async () => ({ asleep: false, dueInMs: 900_000 }),
  };
  const history = await withStubs(taskQueues.events, parked, async (client) => {
    await wakeOf(client)('documents');
    const handle = client.workflow.getHandle(workflowIds.catchUp('documents'));
    const { runId } = await handle.describe();
    const wakenUp = async (...args: unknown[]) => {
      const before = looks;
      await handle.signal(signalNames.wake, ...args);
      await until('it looks for due owners', () => looks > before);
    };
    await until('it waits', () => looks > 0);
    await wakenUp();
    const history = await handle.fetchHistory();
    // Temporal suggests to continue as new after 4,096 events or 4 MiB. A signal that arrives during a
    // workflow task does not count yet when the next task begins, so a small signal follows.
    const large = 'x'.repeat(1_900_000);
    for (let count = 1; count <= 3; count++) await wakenUp(large);
    await wakenUp();
    await until('it continued as new', async () => (await handle.describe()).runId !== runId);
    await handle.terminate();
    return history;
  });
  // The history becomes one of an earlier version, which waited although it should continue as new.
  const waits = history.events?.findLast(({ timerStartedEventAttributes }) => timerStartedEventAttributes);
  const completed = waits?.timerStartedEventAttributes?.workflowTaskCompletedEventId;
  const started = history.events?.findLast(
    ({ eventId, workflowTaskStartedEventAttributes }) =>
      workflowTaskStartedEventAttributes && Number(eventId) < Number(completed),
  )?.workflowTaskStartedEventAttributes;
  expect(started).toBeDefined();
  Object.assign(started ?? {}, { suggestContinueAsNew: true });
  const bundle = await workflowBundle(pino({ level: 'silent' }));
  await Worker.runReplayHistory({ workflowBundle: bundle }, history);
});

import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { scheduleIds, taskQueues, workflowNames } from '../../contract/names.ts';
import { recordEvents } from '../../db/events/record.ts';
import { createDeployment } from '../support/deployment.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { until } from '../support/poll.ts';
import { settleAs } from '../support/settled.ts';

test('the schedule of the worker, even if an older version created it, drops payloads older than the setting', {
  timeout: 120_000,
}, async () => {
  const deployment = await createDeployment({
    env: {
      SERVICE_URL: 'http://127.0.0.1:9/v2.2',
      SERVICE_API_KEY: 'key',
      RETENTION_DAYS: '30',
    },
  });
  onTestFinished(() => deployment.stop());
  const { db } = deployment.warehouse;
  const events = Array.from({ length: 2_500 }, () =>
    delivery(documentEvent('updated', randomUUID(), '2026-01-01T00:00:00.000001')),
  );
  await recordEvents(db, events);
  // Events that wait keep their payloads.
  await settleAs(db, 'applied', sql`true`);
  await db.execute(sql`update metersync.journal set received_at = clock_timestamp() - case
    when id = ${events[0]?.id} then interval '29 days' else interval '31 days' end`);
  const { schedule } = deployment.client;
  const made = await schedule.create({
    scheduleId: scheduleIds.dropPayloads,
    spec: { intervals: [{ every: '2 hours' }] },
    action: {
      type: 'startWorkflow',
      workflowType: workflowNames.dropPayloads,
      taskQueue: 'of-an-older-version',
      args: [],
    },
    state: { paused: true, note: 'not at night' },
  });
  await deployment.run('worker');
  expect(await made.describe()).toMatchObject({
    spec: { intervals: [{ every: 7_200_000 }] },
    action: { taskQueue: taskQueues.backfill, workflowExecutionTimeout: 28_800_000 },
    state: { paused: true, note: 'not at night' },
  });
  expect(await schedule.getHandle(scheduleIds.watch).describe()).toMatchObject({
    action: { taskQueue: taskQueues.backfill, workflowExecutionTimeout: 600_000 },
  });
  await made.trigger();
  const left = async () =>
    (await db.execute<{ id: string }>(sql`select id from metersync.events where payload is not null`)).rows;
  await until('only the young payload is left', async () => (await left()).length <= 1, {
    timeoutMs: 60_000,
  });
  expect(await left()).toEqual([{ id: events[0]?.id }]);
});

import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { scheduleIds, taskQueues, workflowNames } from '../../contract/names.ts';
import { startCollector } from '../support/collector.ts';
import { createDeployment } from '../support/deployment.ts';
import { forFile } from '../support/for-file.ts';
import { until } from '../support/poll.ts';

/** The collector does not answer alarms until this is resolved. */
let door: Promise<void> | undefined;

const collector = await forFile(
  startCollector(async ({ path }) => {
    if (path === '/json') await door;
    return 200;
  }),
);
const deployment = await forFile(
  createDeployment({
    env: {
      // No part of the test sends requests to the service.
      SERVICE_URL: `${collector.url}/v2.2`,
      SERVICE_API_KEY: 'key',
      NOTIFY_URL: `${collector.url}/json`,
      NOTIFY_SECRET: `whsec_${Buffer.from('a secret of twenty-four bytes').toString('base64')}`,
      HEARTBEAT_URL: `${collector.url}/beat`,
    },
  }),
);
await deployment.start('worker');

const startLook = () =>
  deployment.client.workflow.start(workflowNames.watch, {
    workflowId: `look/${randomUUID()}`,
    taskQueue: taskQueues.backfill,
    args: [],
  });
const look = async (): Promise<unknown> => (await startLook()).result();
const runId = randomUUID();
const setRun = (state: string) =>
  deployment.warehouse.db.execute(sql`
    insert into metersync.runs (run_id, state, finished_at) values (${runId}::uuid, ${state}, now())
    on conflict (run_id, company_id, resource) do update set state = excluded.state`);
const posts = () => collector.got.filter(({ path }) => path === '/json');

test('the watch runs as soon as a worker starts and calls the dead man’s switch', {
  timeout: 60_000,
}, async () => {
  await until('it has looked', () => collector.got.some(({ path }) => path === '/beat'));
  await deployment.client.schedule.getHandle(scheduleIds.watch).pause();
});

test('an alarm is reported once when it opens and once when it is over, even if the worker is killed before it notes the message', {
  timeout: 120_000,
}, async () => {
  const opened = Promise.withResolvers<void>();
  door = opened.promise;
  await setRun('failed');
  const killed = await startLook();
  await until('it is sent', () => posts().length === 1);
  await deployment.part('worker').end('SIGKILL');
  // Otherwise Temporal would retry the look 40 s later.
  await killed.terminate();
  opened.resolve();
  await deployment.run('worker');
  await look();
  const [one, again] = posts();
  expect(again?.body).toBe(one?.body);
  await look();
  await setRun('complete');
  await look();
  await look();
  const ids = posts().map(({ headers }) => String(headers['webhook-id']));
  const [id = ''] = ids;
  expect(id).toMatch(/-opened$/);
  // A worker that starts also looks, so messages may be repeated.
  expect([...new Set(ids)]).toEqual([id, id.replace('opened', 'resolved')]);
  expect(ids.filter((one) => one.endsWith('resolved'))).toHaveLength(1);
});

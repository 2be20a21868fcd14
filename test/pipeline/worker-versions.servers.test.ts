import { expect, test } from 'vitest';
import { starterOf } from '../../app/temporal/client.ts';
import type { RunningWorker } from '../../app/worker-part.ts';
import { runCommand } from '../support/command.ts';
import { forFile } from '../support/for-file.ts';
import { startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';
import { pollingBuilds } from '../support/polling-builds.ts';
import { promote } from '../support/promote.ts';

const deployment = (build: string) => ({
  TEMPORAL_DEPLOYMENT_NAME: 'metersync',
  TEMPORAL_WORKER_BUILD_ID: build,
});

const pipeline = await forFile(startPipeline({ size: { companies: 2, documents: 10 }, parts: ['receiver'] }));

/** Runs a worker, and waits until Temporal sees its polls. */
async function worker(build: string) {
  const running = pipeline.run('worker', deployment(build)) as Promise<RunningWorker>;
  const polls = async () => (await pollingBuilds(pipeline.client)).includes(build);
  await until(`build ${build} polls`, polls, { everyMs: 5 });
  return await running;
}

/** Starts a group as the receiver in a worker's process does, and returns the build that ran the group. */
async function ranOn(workflowId: string, startHere: RunningWorker['startHere']) {
  const start = startHere ?? starterOf(pipeline.client);
  await start({ workflowId, group: { events: [] }, withinMs: 5_000 });
  const handle = pipeline.client.workflow.getHandle(workflowId);
  await handle.result();
  const { events } = await handle.fetchHistory();
  return events?.find((event) => event.workflowTaskCompletedEventAttributes)
    ?.workflowTaskCompletedEventAttributes?.deploymentVersion?.buildId;
}

test('under load, a new build gets no work until it is promoted, and loses it when the old build is promoted again', {
  timeout: 180_000,
}, async () => {
  const { client, service } = pipeline;
  const first = await worker('1');
  const { stdout } = await runCommand(['status'], { env: pipeline.env });
  expect(stdout).toContain('Temporal gives events to no build, but only workers of other builds poll');
  const former = (await pipeline.run('worker')) as RunningWorker;
  // A worker without a build gets the work. After a promotion, it still runs groups that its own receiver
  // accepts.
  expect(await pipeline.backfill()).toBe('complete');
  await promote(client, 'metersync', '1');
  expect(await ranOn('event/of-former', former.startHere)).toBeUndefined();
  expect(await ranOn('event/of-first', first.startHere)).toBe('1');
  await former.stop();

  const second = await worker('2');
  await service.random(15, 3);
  expect(await ranOn('event/of-second', second.startHere)).toBe('1');
  await promote(client, 'metersync', '2');
  await service.random(15, 4);
  expect(await ranOn('event/promoted', second.startHere)).toBe('2');
  await promote(client, 'metersync', '1');
  await service.random(15, 5);
  expect(await ranOn('event/back', second.startHere)).toBe('1');
  await pipeline.settled();
  expect((await pipeline.audit()).differences).toBe(0);
  await Promise.all([first.stop(), second.stop()]);
});

import { Worker } from '@temporalio/worker';
import { expect, onTestFinished, test } from 'vitest';
import { readPollers, workerIsPolling } from '../../app/temporal/queue-pollers.ts';
import { taskQueues } from '../../contract/names.ts';
import { until } from '../support/poll.ts';
import { pollingBuilds } from '../support/polling-builds.ts';
import { promote } from '../support/promote.ts';
import { openNamespace, withStubs } from '../support/stub-worker.ts';

test('a worker counts as running while all its activity slots are in use and it only polls for workflow tasks', async () => {
  await withStubs(taskQueues.backfill, {}, async (client) => {
    await until('it polls', () => workerIsPolling(client, 'backfill'));
    expect(await workerIsPolling(client, 'checks')).toBe(false);
  });
  const look = { look: async () => {} };
  await withStubs(taskQueues.watch, look, async (client) => {
    await until('it polls for looks', () => workerIsPolling(client, 'watch'));
    // The slot for checks may be in use.
    expect(await workerIsPolling(client, 'checks')).toBe(true);
    expect(await workerIsPolling(client, 'events')).toBe(false);
  });
});

test('a build whose slots are in use has the work, even next to a build that has no work and polls', async () => {
  const { client, ofWorker, close } = await openNamespace();
  onTestFinished(close);
  const workerOf = async (buildId: string, activities: object) =>
    await Worker.create({
      ...ofWorker,
      taskQueue: taskQueues.events,
      activities,
      workerDeploymentOptions: {
        version: { deploymentName: 'd', buildId },
        useWorkerVersioning: true,
        defaultVersioningBehavior: 'PINNED',
      },
    });
  const [busy, idle] = await Promise.all([workerOf('busy', {}), workerOf('idle', { look: async () => {} })]);
  const promoted = async () => {
    await until('both are seen', async () => (await pollingBuilds(client)).length === 2);
    await promote(client, 'd', 'busy');
    await until('the busy one serves', async () => (await readPollers(client, 'events')).absent === null);
  };
  await busy.runUntil(idle.runUntil(promoted()));
});

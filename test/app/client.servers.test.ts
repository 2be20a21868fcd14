import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Client, Connection } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { expect, onTestFinished, test } from 'vitest';
import { lazyClient, readPollers, starterOf, workerIsPolling } from '../../app/temporal/client.ts';
import { taskQueues } from '../../contract/names.ts';
import { rejection } from '../service/setup.ts';
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
    // The same process serves the checks, whose only slot may be in use.
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
  // A worker without activities polls only for workflow tasks, like one whose activity slots are all in use.
  const [busy, idle] = await Promise.all([workerOf('busy', {}), workerOf('idle', { look: async () => {} })]);
  const promoted = async () => {
    await until('both are seen', async () => (await pollingBuilds(client)).length === 2);
    await promote(client, 'd', 'busy');
    await until('the busy one serves', async () => (await readPollers(client, 'events')).absent === null);
  };
  await busy.runUntil(idle.runUntil(promoted()));
});

/** Statuses of gRPC for an unknown call, and for a request that no retry makes right. */
const unimplemented = '12';
const invalidArgument = '3';

/** Reads the milliseconds of a deadline in gRPC's header. */
function deadlineOf(headers: IncomingHttpHeaders): number {
  const [, digits = '', unit = ''] = /^(\d+)([HMSmun])$/.exec(String(headers['grpc-timeout'])) ?? [];
  const ms: Record<string, number> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };
  return Number(digits) * (ms[unit] ?? Number.NaN);
}

test('each start of a group sends its own deadline to Temporal', async () => {
  const calls: IncomingHttpHeaders[] = [];
  const server = createServer();
  server.on('stream', (stream, headers) => {
    const isStart = headers[':path']?.endsWith('/StartWorkflowExecution');
    if (isStart) calls.push(headers);
    const status = isStart ? invalidArgument : unimplemented;
    stream.on('error', () => {});
    stream.resume();
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': status },
      { endStream: true },
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connection = Connection.lazy({ address: `127.0.0.1:${(server.address() as AddressInfo).port}` });
  onTestFinished(async () => {
    await connection.close();
    server.close();
  });
  const start = starterOf(new Client({ connection }));
  for (const withinMs of [600_000, 30_000]) {
    const event = { id: 'a', timestamp: 1_700_000_000, receivedAt: '2026-01-01T00:00:00.000Z', body: '{}' };
    await rejection(start({ workflowId: 'event/a/1', group: { events: [event] }, withinMs }));
  }
  expect(calls).toHaveLength(2);
  const [first = Number.NaN, second = Number.NaN] = calls.map(deadlineOf);
  // The time until the request was written is already subtracted.
  expect(first).toBeLessThanOrEqual(600_000);
  expect(first).toBeGreaterThan(30_000);
  expect(second).toBeLessThanOrEqual(30_000);
});

test('a request that waits for its retry when its connection is closed fails without ending the process', async () => {
  let asked = 0;
  const server = createServer();
  server.on('stream', (stream) => {
    asked++;
    const unavailable = '14';
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': unavailable },
      { endStream: true },
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { client, close } = lazyClient({ address: `127.0.0.1:${(server.address() as AddressInfo).port}` });
  const failed = rejection(client.workflowService.getSystemInfo({}));
  await until('it was refused once', () => asked > 0);
  await close();
  expect(await failed).toMatchObject({ details: 'Channel has been shut down' });
});

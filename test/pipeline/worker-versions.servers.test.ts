import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPollers } from '../../app/queue-pollers.ts';
import { startOf } from '../../app/temporal.ts';
import type { RunningWorker } from '../../app/worker-part.ts';
import { promote, readBuilds } from '../../app/worker-versions.ts';
import { workflowNames } from '../../contract/names.ts';
import { runCommand } from '../support/command.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';

const deployment = (build: string) => ({
  TEMPORAL_DEPLOYMENT_NAME: 'metersync',
  TEMPORAL_WORKER_BUILD_ID: build,
});

let pipeline: Pipeline;
beforeAll(async () => {
  pipeline = await startPipeline({ size: { companies: 2, documents: 10 }, parts: ['receiver'] });
}, 120_000);
afterAll(() => pipeline?.stop());

const command = (...args: string[]) => runCommand(args, { env: { ...pipeline.env, ...deployment('any') } });

/** Runs a worker and waits until Temporal knows its build, which may be before the worker is ready. */
async function worker(build: string) {
  const running = pipeline.run('worker', deployment(build)) as Promise<RunningWorker>;
  const polls = () =>
    readBuilds(pipeline.client, 'metersync').then(
      ({ builds }) => builds.some(({ buildId, polls }) => buildId === build && polls),
      () => false,
    );
  await until(`build ${build} polls`, polls, { everyMs: 5 });
  return { running, stop: async () => await (await running).stop() };
}

const state = async (build: string) =>
  (await readBuilds(pipeline.client, 'metersync')).builds.find(({ buildId }) => buildId === build)?.state;

/**
 * Rolls back from build 1 to workers that are gone, though Temporal lists them: the run that tries them does not
 * end.
 */
async function refusedRollback(triedBy: string): Promise<void> {
  const refused = command('workers', 'rollback');
  const tried = pipeline.client.workflow.getHandle(triedBy);
  await until('they are tried', async () => {
    const { status, type } = await tried.describe();
    return status.name === 'RUNNING' && type === workflowNames.watch;
  });
  await tried.terminate();
  expect(await refused).toMatchObject({ status: 1, stderr: expect.stringContaining('nothing was changed') });
  expect(await state('1')).toBe('current');
}

/** Starts a group as the receiver in a worker's process does; returns the build that ran it. */
async function ranOn(workflowId: string, startHere: RunningWorker['startHere']) {
  const start = startHere ?? startOf(pipeline.client);
  await start({ workflowId, group: { events: [] }, withinMs: 5_000 });
  const handle = pipeline.client.workflow.getHandle(workflowId);
  await handle.result();
  const { events } = await handle.fetchHistory();
  return events?.find((event) => event.workflowTaskCompletedEventAttributes)
    ?.workflowTaskCompletedEventAttributes?.deploymentVersion?.buildId;
}

test('a new build gets nothing until it is promoted, and gives it back when rolled back, under load', {
  timeout: 180_000,
}, async () => {
  const { client, service } = pipeline;
  expect(await command('workers', 'list')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('Temporal knows no deployment metersync: start a worker of it'),
  });
  const early = await worker('0');
  const { stdout } = await command('status');
  expect(stdout).toContain('Temporal gives events to no build, and workers of others poll');
  const promoted = await command('workers', 'promote', '0');
  expect(promoted).toMatchObject({ status: 0, stdout: '0 is current.', stderr: '' });
  const former = (await pipeline.run('worker')) as RunningWorker;
  await until('it polls', async () => (await readPollers(client, 'events')).versionless);
  // A worker without a build goes on with what its own receiver takes.
  expect(await ranOn('event/of-former', former.startHere)).toBeUndefined();
  const toFormer = 'Workers without a build have the work.';
  expect((await command('workers', 'rollback')).stdout).toBe(toFormer);
  expect((await command('doctor')).stdout).toMatch(/ok +builds +no build has the work/);
  expect(await pipeline.backfill()).toBe('complete');

  // The build that was rolled back had lost the work before the next one got it.
  const older = await worker('1');
  expect((await command('workers', 'promote', '1')).status).toBe(0);
  expect((await command('workers', 'rollback')).stdout).toBe(toFormer);
  expect((await command('workers', 'promote', '1')).status).toBe(0);
  await Promise.all([former.stop(), early.stop()]);
  await refusedRollback('try-build/metersync');

  const newer = await worker('2');
  await service.random(15, 3);
  expect(await ranOn('event/of-newer', (await newer.running).startHere)).toBe('1');
  expect(await state('2')).toBe('inactive');
  const listed = await command('workers', 'list');
  expect(listed.stdout).toContain('2 polls and gets no work: metersync workers promote 2');

  expect((await command('doctor')).stdout).toMatch(/warn +builds +build 2 polls and gets no work/);

  expect((await command('workers', 'promote', '2', '--ramp', '50')).status).toBe(0);
  expect(await state('2')).toBe('ramping');
  await service.random(15, 4);
  expect((await command('workers', 'promote', '2')).status).toBe(0);
  expect(await state('2')).toBe('current');
  await service.random(15, 5);
  expect((await command('workers', 'rollback')).stdout).toBe('1 has the work.');
  expect(await state('1')).toBe('current');
  expect(await command('workers', 'rollback')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('the last change was a rollback: metersync workers promote BUILD'),
  });
  expect(await state('1')).toBe('current');
  await service.random(15, 6);
  await pipeline.settled();
  expect((await pipeline.audit()).differences).toBe(0);

  const { rows } = await pipeline.warehouse.db.execute(
    sql`select action, outcome from metersync.operations where action like 'workers %' order by id`,
  );
  expect(rows).toEqual([
    { action: 'workers promote', outcome: 'done' },
    { action: 'workers rollback', outcome: 'done' },
    { action: 'workers promote', outcome: 'done' },
    { action: 'workers rollback', outcome: 'done' },
    { action: 'workers promote', outcome: 'done' },
    { action: 'workers rollback', outcome: 'failed' },
    { action: 'workers promote', outcome: 'done' },
    { action: 'workers promote', outcome: 'done' },
    { action: 'workers rollback', outcome: 'done' },
    { action: 'workers rollback', outcome: 'failed' },
  ]);
  expect((await command('workers', 'promote', '1')).status).toBe(0);
  await newer.stop();

  await refusedRollback('try-build/metersync/2');
  await older.stop();
});

test('a build is promoted as soon as its worker polls; one without a worker is not', {
  timeout: 120_000,
}, async () => {
  const third = await worker('3');
  // Two operators at once.
  const [promoted] = await Promise.all([
    command('workers', 'promote', '3'),
    promote(pipeline.client, 'metersync', '3'),
  ]);
  expect(promoted).toMatchObject({ status: 0, stderr: '' });
  // Also while the warehouse is away.
  const DATABASE_URL = `postgres://metersync@127.0.0.1:${await freePort()}/warehouse`;
  const env = { ...pipeline.env, ...deployment('any'), DATABASE_URL };
  expect(await runCommand(['workers', 'promote', '3'], { env })).toMatchObject({
    status: 0,
    stderr: expect.stringContaining('Not in the log of operations'),
  });
  expect(await command('workers', 'promote', 'none')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('no worker of build none has polled, so nothing was changed'),
  });
  expect(await state('3')).toBe('current');
  await third.stop();
});

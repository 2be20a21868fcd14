import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readSchedule, type ScheduleState } from '../../app/schedules.ts';
import { type Outcome, runCommand } from '../support/command.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';

/**
 * The command on a real Temporal, in the order in which a user would call it, and workers that start and
 * stop.
 */
let pipeline: Pipeline;
beforeAll(async () => {
  pipeline = await startPipeline({ size: { companies: 1, documents: 5, intervalDays: 1 }, parts: [] });
});
afterAll(() => pipeline?.stop());

const metersync = (...args: string[]): Promise<Outcome> =>
  runCommand(['schedule', ...args], { env: pipeline.env });

async function json(...args: string[]): Promise<ScheduleState> {
  const { status, stdout, stderr } = await metersync(...args, '--json');
  expect(status, stderr).toBe(0);
  const { schedules } = JSON.parse(stdout) as { schedules: ScheduleState[] };
  return schedules.find(({ name }) => name === 'full') as ScheduleState;
}

/** Starts a worker, waits until it has made its schedules, and stops it. */
async function workerStarts(): Promise<void> {
  const worker = await pipeline.run('worker', { MAKE_SCHEDULES: 'on' });
  await worker.stop();
}

const now = () => readSchedule(pipeline.client, 'full');
const anything = expect.any(String);
const nightly = {
  name: 'full',
  state: 'active',
  reason: null,
  times: '0 3 * * * (UTC)',
  jitterSeconds: 1_800,
  catchUpSeconds: 43_200,
  running: [],
  last: [],
  missed: 0,
};

describe('an absent schedule', { timeout: 120_000 }, () => {
  test('is reported as absent, and takes only set and reset', async () => {
    expect(await json('show')).toMatchObject({ state: 'absent', times: null, next: [] });
    for (const action of ['pause', 'resume', 'trigger', 'remove']) {
      const { status, stdout, stderr } = await metersync(action);
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      expect(stderr).toBe('metersync: there is no schedule full: metersync schedule reset full makes it');
    }
  });

  test('is made by a worker: nightly, each start with jitter', async () => {
    await workerStarts();
    const made = await json('show', 'full');
    expect(made).toMatchObject(nightly);
    expect(made.next).toHaveLength(5);
    for (const at of made.next) expect(at).toMatch(/T03:[012]\d:\d\d\.\d{3}Z$/);
  });
});

describe('an existing schedule', { timeout: 120_000 }, () => {
  test('is changed by set, and a worker that starts does not change it back', async () => {
    const cron = await json('set', 'full', '--cron', '15 2 * * 1', '--time-zone', 'Europe/Berlin');
    expect(cron).toMatchObject({ ...nightly, times: '15 2 * * 1 (Europe/Berlin)' });
    const every = await json('set', '--every', '6h', '--jitter', '1m', '--catch-up', '1h');
    expect(every).toMatchObject({
      ...nightly,
      times: 'every 6h',
      jitterSeconds: 60,
      catchUpSeconds: 3_600,
    });
    await workerStarts();
    expect(await now()).toMatchObject({ times: 'every 6h', jitterSeconds: 60 });
  });

  test('keeps the times that set does not name; set without options is wrong usage', async () => {
    await json('set', '--cron', '30 1 * * 6', '--time-zone', 'Europe/Berlin', '--jitter', '1m');
    expect(await json('set', '--jitter', '5m')).toMatchObject({
      ...nightly,
      times: '30 1 * * 6 (Europe/Berlin)',
      jitterSeconds: 300,
      catchUpSeconds: 3_600,
      next: [expect.stringMatching(/T0[01]:3[0-5]:/), ...Array(4).fill(anything)],
    });
    const kept = { jitterSeconds: 300, catchUpSeconds: 3_600 };
    expect(await json('set', '--time-zone', 'Asia/Tokyo')).toMatchObject({
      ...kept,
      times: '30 1 * * 6 (Asia/Tokyo)',
    });
    expect(await json('set', '--cron', '0 5 * * *')).toMatchObject({
      ...kept,
      times: '0 5 * * * (Asia/Tokyo)',
    });
    const bare = await metersync('set');
    expect(bare).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining('schedule reset') });
    expect(await now()).toMatchObject({ ...kept, times: '0 5 * * * (Asia/Tokyo)' });
    expect(await json('set', '--every', '6h')).toMatchObject({ ...kept, times: 'every 6h' });
    expect(await json('set', '--catch-up', '2h')).toMatchObject({
      times: 'every 6h',
      jitterSeconds: 300,
      catchUpSeconds: 7_200,
    });
  });

  test('stays unchanged when Temporal refuses the times, and the command ends with status 2', async () => {
    const { status, stdout, stderr } = await metersync('set', '--cron', 'at night');
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(/^metersync: Temporal does not take these times: .*CronString/);
    const noZone = await metersync('set', '--time-zone', 'Europe/Berlin');
    expect(noZone).toMatchObject({ status: 2, stderr: expect.stringContaining('this schedule has none') });
    const zone = await metersync('set', '--cron', '0 3 * * *', '--time-zone', 'Mars/Olympus');
    expect(zone).toMatchObject({ status: 2, stderr: expect.stringContaining('Mars/Olympus') });
    expect(await now()).toMatchObject({ times: 'every 6h' });
  });

  test('stays paused with its reason after reset and a worker, until it is resumed', async () => {
    expect(await json('pause', '--reason', 'the service moves house')).toMatchObject({
      state: 'paused',
      reason: 'the service moves house',
      next: [],
    });
    await workerStarts();
    expect(await json('reset')).toMatchObject({
      ...nightly,
      state: 'paused',
      reason: 'the service moves house',
    });
    expect((await metersync('reset')).stdout).toContain(
      'full: paused until metersync schedule resume; the service moves house; 0 3 * * * (UTC), jitter 30m, catches up 12h',
    );
    expect(await json('resume')).toMatchObject(nightly);
  });

  test('that is triggered starts a run and reports its end', async () => {
    const worker = await pipeline.run('worker');
    await metersync('trigger');
    const last = await until('the run is over', async () => {
      const [latest] = (await now()).last;
      return latest?.state === 'complete' ? latest : undefined;
    });
    expect(last.workflowId).toMatch(/^backfill-run\/scheduled-/);
    expect((await metersync('show')).stdout).toContain(`complete (${last.workflowId})`);
    expect(await pipeline.audit()).toMatchObject({ differences: 0 });
    await worker.stop();
  });

  test('that was removed is made again only by set and reset, not by a worker', async () => {
    expect(await json('remove')).toMatchObject({ state: 'removed', times: null, next: [], reason: null });
    await workerStarts();
    expect(await now()).toMatchObject({ state: 'removed', next: [] });
    const { status, stderr } = await metersync('resume');
    expect(status).toBe(1);
    expect(stderr).toBe(
      'metersync: somebody removed the schedule full: metersync schedule reset full makes it',
    );
    const { next } = await json('reset');
    expect(next.length).toBeGreaterThan(0);
    expect(await now()).toMatchObject({ ...nightly, last: expect.any(Array) });
  });
});

test('a schedule is paused while the warehouse is away, and the command says that the log lacks it', async () => {
  const DATABASE_URL = `postgres://metersync@127.0.0.1:${await freePort()}/warehouse`;
  const env = { ...pipeline.env, DATABASE_URL };
  const { status, stderr } = await runCommand(['schedule', 'pause'], { env });
  expect(status, stderr).toBe(0);
  expect(stderr).toMatch(/^Not in the log of operations: .*ECONNREFUSED/);
  expect(await now()).toMatchObject({ state: 'paused' });
});

test('while Temporal is away it says where it was looked for', async () => {
  const address = `127.0.0.1:${await freePort()}`;
  const env = { ...pipeline.env, TEMPORAL_ADDRESS: address };
  const { status, stderr } = await runCommand(['schedule', 'show'], { env });
  expect(status).toBe(1);
  expect(stderr).toMatch(
    new RegExp(`^metersync: Temporal at ${address} \\(TEMPORAL_ADDRESS\\) is away: bring it up.+$`),
  );
});

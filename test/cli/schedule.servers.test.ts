import { describe, expect, test } from 'vitest';
import { readSchedule, type ScheduleState } from '../../app/temporal/schedules.ts';
import { type RunKind, scheduleIds } from '../../contract/names.ts';
import { type Outcome, runCommand } from '../support/command.ts';
import { forFile } from '../support/for-file.ts';
import { startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';

/** Calls the command on a real Temporal in the order in which a user would, while workers start and stop. */
const pipeline = await forFile(
  startPipeline({ size: { companies: 1, documents: 5, intervalDays: 1 }, parts: [] }),
);

const metersync = (...args: string[]): Promise<Outcome> =>
  runCommand(['schedule', ...args], { env: pipeline.env });

async function json(...args: string[]): Promise<ScheduleState> {
  const { status, stdout, stderr } = await metersync(...args, '--json');
  expect(status, stderr).toBe(0);
  const { schedules } = JSON.parse(stdout) as { schedules: ScheduleState[] };
  return schedules.find(({ name }) => name === 'full') as ScheduleState;
}

/** Starts a worker with settings, which the worker applies to the schedules, and stops it. */
async function workerStarts(settings: Readonly<Record<string, string>> = {}): Promise<void> {
  const worker = await pipeline.run('worker', { BACKFILL_CRON: '', RECONCILE_EVERY: '', ...settings });
  await worker.stop();
}

const now = (name: RunKind = 'full') => readSchedule(pipeline.client, name);
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
  test('is reported as absent, and cannot be paused or resumed', async () => {
    expect(await json('show')).toMatchObject({ state: 'absent', times: null, next: [] });
    for (const action of ['pause', 'resume']) {
      const { status, stdout, stderr } = await metersync(action, 'full');
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      expect(stderr).toBe(
        'metersync: the schedule full does not exist: a worker creates it when it starts, unless BACKFILL_CRON is none',
      );
    }
  });

  test('is created by a worker: each night, with jitter for each start', async () => {
    await workerStarts();
    const made = await json('show', 'full');
    expect(made).toMatchObject(nightly);
    expect(made.next).toHaveLength(5);
    for (const at of made.next) expect(at).toMatch(/T03:[012]\d:\d\d\.\d{3}Z$/);
    expect(await now('reconcile')).toMatchObject({ times: 'every 1h', jitterSeconds: 600 });
  });
});

describe('an existing schedule', { timeout: 120_000 }, () => {
  test('gets the times of the settings when a worker starts', async () => {
    await workerStarts({ BACKFILL_CRON: 'CRON_TZ=Europe/Berlin 15  2 * * 1', RECONCILE_EVERY: '15m' });
    expect(await now()).toMatchObject({ ...nightly, times: '15 2 * * 1 (Europe/Berlin)' });
    expect(await now('reconcile')).toMatchObject({ times: 'every 15m', jitterSeconds: 150 });
    expect((await metersync('show')).stdout).toMatch(/^ {2}next: .*, 02:\d\d in Europe\/Berlin, /m);
    await workerStarts();
    expect(await now()).toMatchObject(nightly);
    expect(await now('reconcile')).toMatchObject({ times: 'every 1h', jitterSeconds: 600 });
  });

  test('is not written again by a worker whose settings it already has', async () => {
    const updatedAt = async () => {
      const handle = pipeline.client.schedule.getHandle(scheduleIds.full);
      return (await handle.describe()).info.lastUpdatedAt;
    };
    const before = await updatedAt();
    await workerStarts();
    expect(await updatedAt()).toEqual(before);
  });

  test('stays as it is if Temporal refuses the times, and the worker ends with wrong settings', async () => {
    const refused = pipeline.run('worker', { BACKFILL_CRON: '99 3 * * *' });
    await expect(refused).rejects.toThrow(/BACKFILL_CRON: Temporal does not accept it: /);
    expect(await now()).toMatchObject(nightly);
  });

  test('stays paused with its reason when a worker changes its times, until it is resumed', async () => {
    expect(await json('pause', 'full', '--reason', 'the service moves house')).toMatchObject({
      state: 'paused',
      reason: expect.stringMatching(
        /^paused by \S+ at \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ: the service moves house$/,
      ),
      next: [],
    });
    await workerStarts({ BACKFILL_CRON: '0 5 * * *' });
    expect((await metersync('show', 'full')).stdout).toMatch(
      /^full: paused by .*Z: the service moves house; resume with metersync schedule resume full; 0 5 \* \* \* \(UTC\), jitter 30m, makes up for missed starts of the last 12h$/m,
    );
    expect((await metersync('pause', 'reconcile')).stdout).toMatch(
      /^reconcile: paused by .*Z, no reason given; resume with metersync schedule resume reconcile; /,
    );
    for (const action of ['pause', 'resume'])
      expect(await metersync(action), `${action} without a name`).toMatchObject({ status: 2, stdout: '' });
    expect([(await now()).state, (await now('reconcile')).state]).toEqual(['paused', 'paused']);
    await metersync('resume', 'reconcile');
    await workerStarts();
    expect(await json('resume', 'full')).toMatchObject(nightly);
  });

  test('gets its times back but stays paused if an older version removed them', async () => {
    const note = 'removed with metersync schedule remove';
    await pipeline.client.schedule
      .getHandle(scheduleIds.full)
      .update((existing) => ({ ...existing, spec: {}, state: { paused: true, note } }));
    await workerStarts();
    expect(await now()).toMatchObject({ state: 'paused', reason: note, times: '0 3 * * * (UTC)' });
    await json('resume', 'full');
  });

  test('starts a run and reports its end when it is triggered', async () => {
    const worker = await pipeline.run('worker', { BACKFILL_CRON: '' });
    await pipeline.client.schedule.getHandle(scheduleIds.full).trigger();
    const last = await until('the run is over', async () => {
      const [latest] = (await now()).last;
      return latest?.state === 'complete' ? latest : undefined;
    });
    expect(last.workflowId).toMatch(/^backfill-run\/scheduled-/);
    expect((await metersync('show')).stdout).toContain(`complete (${last.workflowId})`);
    expect(await pipeline.audit()).toMatchObject({ differences: 0 });
    await worker.stop();
  });

  test('is deleted by a worker whose setting is none', async () => {
    await workerStarts({ BACKFILL_CRON: 'none' });
    expect(await now()).toMatchObject({ state: 'absent', next: [] });
    expect(await now('reconcile')).toMatchObject({ state: 'active' });
    await workerStarts();
    expect(await now()).toMatchObject(nightly);
  });
});

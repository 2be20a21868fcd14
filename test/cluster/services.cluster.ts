import { setTimeout as delay } from 'node:timers/promises';
import { ScheduleOverlapPolicy } from '@temporalio/client';
import { expect } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import type { ScheduleState } from '../../app/temporal/schedules.ts';
import { createRandom } from '../../bench/world.ts';
import { scheduleIds, workflowIds } from '../../contract/names.ts';
import type { AlarmName } from '../../health/findings.ts';
import { fault, say, seeds, times } from '../faults/fault.ts';
import { eventsPerSecond, startLoad } from '../faults/load.ts';
import type { Part } from '../faults/part.ts';
import { seedOf } from '../faults/plan.ts';
import type { Rig } from '../faults/rig.ts';
import { verdict } from '../faults/verdict.ts';
import { until } from '../support/poll.ts';
import { withRig } from './with-rig.ts';

const loadSeconds = 20;

/** The schedules of a deployment without settings. A rig has none. */
const schedules = { BACKFILL_CRON: '0 3 * * *', RECONCILE_EVERY: '1h' };

/** Alarms that may open: a run finds listings that move, and changes whose events are late. */
const found: readonly AlarmName[] = ['ChangesMissed', 'RunUnwell'];
/** Alarms that may also open because the service's work is late by seconds, for the rules minutes. */
const late: readonly AlarmName[] = [...found, 'RunStalled'];

fault('T1', 'backfill, disturbed events and schedules', seeds(), { may: found }, (seed) =>
  withRig(
    async (rig) => {
      expect(await rig.backfill()).toBe('complete');
      await rig.service.disturb({ duplicate: 0.1, shuffle: true, delayMs: [0, 400], seed });
      const load = startLoad(rig.service, seedOf(seed, 'T1'), eventsPerSecond);
      const runs = await scheduledRuns(rig);
      const { perSecond } = await load.end(loadSeconds);
      const figures = await verdict(rig);
      return {
        injected: `scheduled runs: ${runs.join(', ')}`,
        perSecond,
        figures,
      };
    },
    { env: schedules },
  ),
);

/** Triggers both schedules, waits until their runs end, and returns how they ended. */
async function scheduledRuns(rig: Rig): Promise<string[]> {
  const ends: string[] = [];
  for (const name of ['reconcile', 'full'] as const) {
    await rig.client.schedule.getHandle(scheduleIds[name]).trigger(ScheduleOverlapPolicy.BUFFER_ONE);
    const end = await until(
      `the run of ${name} ends`,
      async () => {
        const { stdout } = await rig.run(['schedule', 'show', name, '--json']);
        const [schedule] = (JSON.parse(stdout) as { schedules: ScheduleState[] }).schedules;
        const state = schedule?.last[0]?.state;
        return state === 'running' ? undefined : state;
      },
      { timeoutMs: 300_000, everyMs: 500 },
    );
    // A listing that changes in all of its passes makes a run suspect.
    expect(['complete', 'suspect']).toContain(end);
    ends.push(`${name} ${end}`);
  }
  return ends;
}

/** Strikes each service in turn, under load and during a backfill. */
async function inTurn(
  seed: number,
  name: string,
  strike: (service: Part, random: ReturnType<typeof createRandom>) => Promise<void>,
) {
  return await withRig(async (rig, { services }) => {
    const random = createRandom(seedOf(seed, name));
    const load = startLoad(rig.service, seedOf(seed, name), eventsPerSecond);
    const runId = await startBackfill(rig.client);
    for (let round = 0; round < times(2); round++) {
      for (const service of services) {
        await delay(random.int(200, 1_500));
        rig.harm();
        await strike(service, random);
        say(`${name}, seed ${seed}: ${service.name} is back`);
      }
    }
    const { perSecond } = await load.end(loadSeconds);
    const run = rig.client.workflow.getHandle(workflowIds.backfill(runId));
    expect(['complete', 'suspect']).toContain(await run.result());
    const figures = await verdict(rig);
    return { services: services.length * times(2), perSecond, figures };
  });
}

fault('T2', 'each service of Temporal is killed in turn, twice', seeds(), { may: late }, async (seed) => {
  const { perSecond, figures, services } = await inTurn(seed, 'T2', async (service, random) => {
    await service.kill();
    await delay(random.int(0, 3_000));
    await service.start();
  });
  expect(figures.kills).toBe(services);
  return { injected: '', perSecond, figures };
});

fault('T3', 'two rolling restarts of all services', seeds(), { may: late }, async (seed) => {
  const { perSecond, figures, services } = await inTurn(seed, 'T3', async (service) => {
    await service.stop('SIGTERM');
    await service.start();
  });
  return { injected: `${services} × SIGTERM`, perSecond, figures };
});

fault('T4', 'all services are killed at once', seeds(), { may: late }, (seed) =>
  withRig(async (rig, { whole }) => {
    expect(await rig.backfill()).toBe('complete');
    const load = startLoad(rig.service, seedOf(seed, 'T4'), eventsPerSecond);
    await delay(3_000);
    rig.harm();
    await whole.kill();
    // Temporal is down for longer than the receiver waits before it answers 503.
    await delay(9_000);
    await whole.start();
    const { perSecond } = await load.end(loadSeconds);
    const figures = await verdict(rig);
    expect(figures.answers['503']).toBeGreaterThan(0);
    return { injected: '', perSecond, figures };
  }),
);

import { setTimeout as delay } from 'node:timers/promises';
import { ScheduleOverlapPolicy } from '@temporalio/client';
import { expect } from 'vitest';
import type { ScheduleState } from '../../app/temporal/schedules.ts';
import type { Random } from '../../bench/world.ts';
import { scheduleIds } from '../../contract/names.ts';
import type { AlarmName } from '../../health/findings.ts';
import { type Fault, fault, say, times } from '../faults/fault.ts';
import type { Part } from '../faults/part.ts';
import type { Rig } from '../faults/rig.ts';
import { until } from '../support/poll.ts';
import type { Cluster } from './cluster.ts';
import { onCluster } from './surroundings.ts';

/** The schedules of a deployment without settings. A rig has none. */
const schedules = { BACKFILL_CRON: '0 3 * * *', RECONCILE_EVERY: '1h' };

/** Alarms that may open: a run finds listings that move, and changes whose events are late. */
const found: readonly AlarmName[] = ['ChangesMissed', 'RunUnwell'];
/** Alarms that may also open because the service's work is late by seconds, for the rules minutes. */
const late: readonly AlarmName[] = [...found, 'RunStalled'];

const row = { eachSeed: true, loadSeconds: 20, around: onCluster() } as const;

fault<Cluster>({
  ...row,
  name: 'T1',
  title: 'backfill, disturbed events and schedules',
  alarms: { may: found },
  around: onCluster({ env: schedules }),
  prepare: ({ service }, _made, seed) =>
    service.disturb({ duplicate: 0.1, shuffle: true, delayMs: [0, 400], seed }),
  backfill: 'before',
  strike: async ({ rig }) => `scheduled runs: ${(await scheduledRuns(rig)).join(', ')}`,
});

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

/** Strikes each service in turn, twice, under load and during a backfill. Kills need no description `what`. */
const inTurn =
  (
    name: string,
    strike: (service: Part, random: Random) => Promise<void>,
    what?: string,
  ): Fault<Cluster>['strike'] =>
  async ({ rig, made: { services }, seed, random }) => {
    for (let round = 0; round < times(2); round++) {
      for (const service of services) {
        await delay(random.int(200, 1_500));
        rig.harm();
        await strike(service, random);
        say(`${name}, seed ${seed}: ${service.name} is back`);
      }
    }
    return what === undefined ? undefined : `${services.length * times(2)} × ${what}`;
  };

fault<Cluster>({
  ...row,
  name: 'T2',
  title: 'each service of Temporal is killed in turn, twice',
  alarms: { may: late },
  backfill: 'during',
  strike: inTurn('T2', async (service, random) => {
    await service.kill();
    await delay(random.int(0, 3_000));
    await service.start();
  }),
  check: ({ kills }, _rig, { services }) => expect(kills).toBe(services.length * times(2)),
});

fault<Cluster>({
  ...row,
  name: 'T3',
  title: 'two rolling restarts of all services',
  alarms: { may: late },
  backfill: 'during',
  strike: inTurn(
    'T3',
    async (service) => {
      await service.stop('SIGTERM');
      await service.start();
    },
    'SIGTERM',
  ),
});

fault<Cluster>({
  ...row,
  name: 'T4',
  title: 'all services are killed at once',
  alarms: { may: late },
  backfill: 'before',
  strike: async ({ rig, made: { whole } }) => {
    await delay(3_000);
    rig.harm();
    await whole.kill();
    // Temporal is down for longer than the receiver waits before it answers 503.
    await delay(9_000);
    await whole.start();
  },
  check: ({ answers }) => expect(answers['503']).toBeGreaterThan(0),
});

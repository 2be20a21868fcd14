import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { workflowIds } from '../../contract/names.ts';
import { workLate } from './alarms.ts';
import { type Found, fault, say, seeds, times } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { type Blow, blowsFor, describePlan, type PartName, partNames, seedOf } from './plan.ts';
import { type Rig, startRig } from './rig.ts';
import { startAll, verdict } from './verdict.ts';

/** The load lasts as long as the blows, but at least this long. */
const loadSeconds = 20;

/** Kills parts under load and during a backfill. */
async function killing(
  seed: number,
  name: string,
  blowsByDefault: number,
  parts: readonly PartName[],
  downMs: readonly [least: number, most: number] = [0, 1_000],
): Promise<Found> {
  const blows = blowsFor(seed, name, {
    times: times(blowsByDefault),
    parts,
    afterMs: [200, 1_500],
    downMs,
  });
  say(`${name}, seed ${seed}: ${describePlan(blows)}`);
  const rig = await startRig();
  try {
    const load = startLoad(rig.service, seedOf(seed, name), eventsPerSecond);
    const runId = await startBackfill(rig.client);
    await strike(rig, blows);
    const { perSecond } = await load.end(loadSeconds);
    await startAll(rig);
    const run = rig.client.workflow.getHandle(workflowIds.backfill(runId));
    // A listing that changes in all of its passes makes the run suspect.
    expect(['complete', 'suspect']).toContain(await run.result());
    const figures = await verdict(rig);
    expect(figures.kills).toBe(blows.length * parts.length);
    return { injected: '', perSecond, figures };
  } finally {
    await rig.stop();
  }
}

async function strike(rig: Rig, blows: readonly Blow[]): Promise<void> {
  const { parts } = rig;
  for (const { afterMs, at } of blows) {
    await delay(afterMs);
    rig.harm();
    await Promise.all(at.map(({ part }) => parts[part].kill()));
    await Promise.all(
      at.map(async ({ part, downMs }) => {
        await delay(downMs);
        await parts[part].start();
      }),
    );
  }
}

fault('C1', 'the receiver is killed', seeds(), { may: ['RunUnwell'] }, async (seed) => {
  const found = await killing(seed, 'C1', 4, ['receiver']);
  expect(found.figures.answers.none).toBeGreaterThan(0);
  return found;
});

fault('C2', 'the worker is killed', seeds(), { may: workLate }, (seed) => killing(seed, 'C2', 4, ['worker']));

// Temporal is down for longer than the receiver waits before it answers 503.
fault('C3', 'Temporal is killed', seeds(), { may: workLate }, async (seed) => {
  const found = await killing(seed, 'C3', 2, ['temporal'], [9_000, 12_000]);
  expect(found.figures.answers['503']).toBeGreaterThan(0);
  return found;
});

fault('C4', 'Postgres is killed', seeds(), { may: workLate }, (seed) => killing(seed, 'C4', 2, ['postgres']));

fault('C5', 'all four are killed at once and come back in any order', seeds(), { may: workLate }, (seed) =>
  killing(seed, 'C5', 2, partNames),
);

import { expect } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { workflowIds } from '../../contract/names.ts';
import type { AlarmName } from '../../health/findings.ts';
import type { Found } from '../faults/fault.ts';
import { eventsPerSecond, startLoad } from '../faults/load.ts';
import { seedOf } from '../faults/plan.ts';
import type { Rig } from '../faults/rig.ts';
import { verdict } from '../faults/verdict.ts';

/** Alarms that may open: a run finds listings that move, and the work of the part that was struck is late. */
export const may: readonly AlarmName[] = ['ChangesMissed', 'RunUnwell', 'RunStalled'];

const loadSeconds = 20;

/** Runs a backfill during live changes and `strike`, and compares the service with the warehouse. */
export async function backfillUnderLoad(
  rig: Rig,
  seed: number,
  name: string,
  strike: () => Promise<void> = async () => {},
): Promise<Pick<Found, 'perSecond' | 'figures'>> {
  const load = startLoad(rig.service, seedOf(seed, name), eventsPerSecond);
  const run = rig.client.workflow.getHandle(workflowIds.backfill(await startBackfill(rig.client)));
  await strike();
  const { perSecond } = await load.end(loadSeconds);
  expect(['complete', 'suspect']).toContain(await run.result());
  return { perSecond, figures: await verdict(rig) };
}

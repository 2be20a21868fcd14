import type { Outgoing } from '../load/signed.ts';
import type { BenchSandbox } from './sandbox.ts';

/** Service time for which events are held back, so that a backlog exists before anything is timed. */
const heldSeconds = 3_600;

/** Makes random changes whose events are held back. Returns the events. */
export async function holdChanges(service: BenchSandbox, changes: number): Promise<Outgoing[]> {
  const delayMs = [heldSeconds * 1_000, heldSeconds * 1_000];
  await service.ask('POST', '/sandbox/disturb', { delayMs });
  const events = await service.change(changes);
  await service.ask('POST', '/sandbox/disturb', {});
  return events;
}

/** Releases all held events. */
export async function releaseHeld(service: BenchSandbox): Promise<void> {
  await service.ask('POST', '/sandbox/clock', { advanceSeconds: heldSeconds + 60 });
}

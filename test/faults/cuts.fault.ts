import { expect } from 'vitest';
import { createRandom } from '../../bench/world.ts';
import { type Found, fault, seeds } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { seedOf } from './plan.ts';
import { type CuttingProxy, startProxy } from './proxy.ts';
import { type RigOptions, startRig } from './rig.ts';
import { verdict } from './verdict.ts';

const loadSeconds = 20;

/** Discards answers with the given probability, and cuts their connections. */
async function cutting(
  name: string,
  seed: number,
  probability: number,
  between: (through: (target: string) => Promise<string>) => NonNullable<RigOptions['between']>,
): Promise<Found> {
  const random = createRandom(seedOf(seed, name));
  let proxy: CuttingProxy | undefined;
  const rig = await startRig({
    between: between(async (target) => {
      proxy = await startProxy(target);
      return proxy.address;
    }),
  });
  try {
    expect(await rig.backfill()).toBe('complete');
    proxy?.cutWhen(() => random.next() < probability);
    const load = startLoad(rig.service, seedOf(seed, name), eventsPerSecond);
    const { perSecond } = await load.end(loadSeconds);
    proxy?.cutWhen(() => false);
    const figures = await verdict(rig);
    expect(proxy?.cuts).toBeGreaterThan(10);
    return { injected: `${proxy?.cuts} connections cut`, perSecond, figures };
  } finally {
    await rig.stop();
    await proxy?.close();
  }
}

fault(
  'C7',
  'the answer to a delivery is lost after the event was taken',
  seeds().slice(0, 1),
  {},
  async (seed) => {
    const found = await cutting('C7', seed, 0.2, (through) => ({ serviceAndReceiver: through }));
    // The service did not see the answers, so it delivered accepted events again.
    expect(found.figures.answers.none).toBeGreaterThan(10);
    return found;
  },
);

fault('C8', "Temporal's answer to a start is lost", seeds().slice(0, 1), {}, (seed) =>
  cutting('C8', seed, 0.1, (through) => ({ receiverAndTemporal: through })),
);

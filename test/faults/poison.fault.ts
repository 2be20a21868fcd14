import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { createRandom } from '../../bench/world.ts';
import { fault, seeds } from './fault.ts';
import { eventsPerSecond, startLoad } from './load.ts';
import { seedOf } from './plan.ts';
import { deliverPoison } from './poison.ts';
import { startRig } from './rig.ts';
import { verdict } from './verdict.ts';

/** They are sent at two a second next to 200 other events, so they are one event in a hundred. */
const poisons = 40;

fault(
  'C16',
  'one event in a hundred cannot be applied',
  seeds().slice(0, 1),
  { must: ['EventsDead'] },
  async (seed) => {
    const random = createRandom(seedOf(seed, 'C16'));
    const rig = await startRig();
    try {
      expect(await rig.backfill()).toBe('complete');
      const load = startLoad(rig.service, seedOf(seed, 'C16'), eventsPerSecond);
      const ids: string[] = [];
      rig.harm();
      for (let sent = 0; sent < poisons; sent++) {
        ids.push(await deliverPoison(rig, random));
        await delay(random.int(200, 800));
      }
      const { perSecond } = await load.end(20);
      const figures = await verdict(rig, { alsoAcknowledged: ids });
      expect(figures.dead).toBe(poisons);
      return { injected: `${poisons} events that cannot be applied`, perSecond, figures };
    } finally {
      await rig.stop();
    }
  },
);

import type { Pool } from 'pg';
import { readSetting, writeSetting } from '../database/settings.ts';
import type { DeliveryDelay } from '../events/outbox.ts';
import { type Disturbance, undisturbed } from './disturbance.ts';

/** The active disturbances: one for all endpoints, and any number for single endpoints. They survive a restart. */
export interface Disturbances {
  of(endpointId: string): Disturbance;
  delays(): DeliveryDelay[];
  set(endpointId: string | null, disturbance: Disturbance): Promise<void>;
}

const setting = 'disturbances';

export async function openDisturbances(pool: Pool): Promise<Disturbances> {
  const everywhere = '';
  const kept = (await readSetting<Record<string, Disturbance>>(pool, setting)) ?? {};
  const known = new Map(Object.entries(kept));
  return {
    of: (endpointId) => known.get(endpointId) ?? known.get(everywhere) ?? undisturbed,
    delays: () =>
      [...known].map(([id, { delayMs, seed }]) => ({
        endpointId: id === everywhere ? null : id,
        leastMs: delayMs[0],
        mostMs: delayMs[1],
        seed,
      })),
    async set(endpointId, disturbance) {
      known.set(endpointId ?? everywhere, disturbance);
      await writeSetting(pool, setting, Object.fromEntries(known));
    },
  };
}

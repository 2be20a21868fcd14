import type { Pool } from 'pg';
import { z } from 'zod';
import { readSetting, writeSetting } from '../database.ts';
import type { DeliveryDelay } from '../events.ts';
import { createRandom } from '../generate/random.ts';

const probability = z.number().min(0).max(1);

/** The body of `POST /sandbox/disturb`: what happens to deliveries on their way. By default nothing does. */
export const disturbanceSchema = z
  .strictObject({
    /** Share of deliveries that arrive twice, with the same id but a new timestamp and signature. */
    duplicate: probability.default(0),
    /** Sends due deliveries in random order, within the deliveries that are claimed together. */
    shuffle: z.boolean().default(false),
    /** Delays every further delivery by a time within these bounds. */
    delayMs: z.tuple([z.number().min(0), z.number().min(0).max(86_400_000)]).default([0, 0]),
    /** Share of deliveries that are never sent. They are listed with the state `dropped`. */
    drop: probability.default(0),
    seed: z.int().default(1),
    /** Only deliveries to this endpoint; otherwise deliveries to all endpoints without a disturbance of their own. */
    endpointId: z.string().optional(),
  })
  .refine(({ delayMs }) => delayMs[0] <= delayMs[1], 'delayMs is [least, most]');
export type Disturbance = z.infer<typeof disturbanceSchema>;

const undisturbed: Disturbance = disturbanceSchema.parse({});

export interface Fate {
  readonly dropped: boolean;
  /** How a second copy is sent: together with the first, after it, or not at all. */
  readonly duplicate: 'none' | 'beside' | 'behind';
}

/** Decides what happens to a delivery. It depends only on the seed and the id, not on the order. */
export function fateOf({ seed, drop, duplicate }: Disturbance, deliveryId: string): Fate {
  if (drop === 0 && duplicate === 0) return { dropped: false, duplicate: 'none' };
  const random = createRandom('fate', seed, deliveryId);
  if (random.chance(drop)) return { dropped: true, duplicate: 'none' };
  if (!random.chance(duplicate)) return { dropped: false, duplicate: 'none' };
  return { dropped: false, duplicate: random.chance(0.5) ? 'beside' : 'behind' };
}

/** Fisher–Yates. */
export function shuffled<T>(items: readonly T[], seed: string): T[] {
  const random = createRandom('shuffle', seed);
  const result = [...items];
  for (let last = result.length - 1; last > 0; last--) {
    const other = random.int(0, last);
    const held = result[last] as T;
    result[last] = result[other] as T;
    result[other] = held;
  }
  return result;
}

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

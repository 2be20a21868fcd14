import { createRandom, type Random } from '../../bench/world.ts';

export const partNames = ['receiver', 'worker', 'temporal', 'postgres'] as const;
export type PartName = (typeof partNames)[number];

/** A blow kills parts, a given time after everything served again. Each stays down for its own time. */
export interface Blow {
  readonly afterMs: number;
  /** The killed parts, in the order of their restart. */
  readonly at: readonly { readonly part: PartName; readonly downMs: number }[];
}

/** Plans kills of parts. The plan depends only on the seed and the fault. */
export function blowsFor(
  seed: number,
  fault: string,
  options: {
    readonly times: number;
    readonly parts: readonly PartName[];
    readonly afterMs: readonly [least: number, most: number];
    readonly downMs: readonly [least: number, most: number];
  },
): Blow[] {
  const random = createRandom(seedOf(seed, fault));
  return Array.from({ length: options.times }, () => {
    const at = Array.from(drawn(random, options.parts), (part) => ({
      part,
      downMs: random.int(...options.downMs),
    }));
    return { afterMs: random.int(...options.afterMs), at };
  });
}

/** Draws all items, one at a time. Other code may use `random` between the draws. */
export function* drawn<T>(random: Random, items: Iterable<T>): Generator<T, void> {
  const left = [...items];
  while (left.length > 0) yield* left.splice(random.int(0, left.length - 1), 1);
}

/** Hashes the seed and the fault with FNV-1a, so that each fault of a seed draws its own sequence. */
export function seedOf(seed: number, fault: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`${seed}/${fault}`)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

/** Describes a plan in one line, for the log of a run. */
export function describePlan(blows: readonly Blow[]): string {
  const one = ({ afterMs, at }: Blow) =>
    `+${afterMs} ms ${at.map(({ part, downMs }) => `${part} ${downMs}`).join(', ')}`;
  return blows.map(one).join('; ');
}

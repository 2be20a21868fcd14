/** Numbers that look random but depend only on the seed, so that every run sends the same events. */
export interface Random {
  /** Returns a number from 0 to below 1. */
  next(): number;
  /** Returns an integer from `least` to `most`, both included. */
  int(least: number, most: number): number;
  pick<T>(from: readonly T[]): T;
  uuid(): string;
}

/** Mulberry32: 32 bits of state are enough for a bench. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const bits = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const next = () => bits() / 2 ** 32;
  const int = (least: number, most: number) => least + Math.floor(next() * (most - least + 1));
  return {
    next,
    int,
    pick: (from) => {
      const picked = from[int(0, from.length - 1)];
      if (picked === undefined) throw new Error('there is nothing to pick from');
      return picked;
    },
    uuid: () => {
      const hex = [bits(), bits(), bits(), bits()].map((part) => part.toString(16).padStart(8, '0')).join('');
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
    },
  };
}

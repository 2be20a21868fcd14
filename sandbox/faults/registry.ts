import { createRandom, type Random } from '../generate/random.ts';
import type { Fault } from './fault.ts';

export interface SetFault {
  readonly id: string;
  readonly fault: Fault;
  /** Requests struck so far. */
  readonly struck: number;
}

/** Holds the active faults, and finds the faults that apply to a request. */
export interface FaultRegistry {
  set(fault: Fault): SetFault;
  list(): SetFault[];
  /** Ends one fault, or all faults if no id is given. */
  clear(id?: string): void;
  /** Returns the faults that strike this path now, and counts the request for each of them. */
  strike(path: string): readonly SetFault[];
}

interface Held extends SetFault {
  struck: number;
  readonly until: number;
  readonly random: Random;
}

/** `now` is real time in milliseconds; `ended` is called with the id of every fault that is over. */
export function createFaultRegistry(now: () => number, ended: (id: string) => void): FaultRegistry {
  const faults = new Map<string, Held>();
  let numbered = 0;

  const end = (id: string) => {
    if (faults.delete(id)) ended(id);
  };
  const dropSpent = () => {
    for (const [id, held] of faults) {
      if (now() >= held.until || held.struck >= (held.fault.times ?? Number.POSITIVE_INFINITY)) end(id);
    }
  };
  const strikes = (held: Held, path: string) =>
    path.startsWith(held.fault.path ?? '') && held.random.chance(held.fault.probability);

  return {
    set(fault) {
      const id = `fault_${++numbered}`;
      const until = fault.seconds === undefined ? Number.POSITIVE_INFINITY : now() + fault.seconds * 1000;
      const held: Held = { id, fault, struck: 0, until, random: createRandom('fault', fault.seed) };
      faults.set(id, held);
      return { id, fault, struck: 0 };
    },
    list() {
      dropSpent();
      return [...faults.values()].map(({ id, fault, struck }) => ({ id, fault, struck }));
    },
    clear(id) {
      for (const known of id === undefined ? [...faults.keys()] : [id]) end(known);
    },
    strike(path) {
      if (faults.size === 0) return [];
      dropSpent();
      const struck = [...faults.values()].filter((held) => strikes(held, path));
      for (const held of struck) held.struck++;
      return struck;
    },
  };
}

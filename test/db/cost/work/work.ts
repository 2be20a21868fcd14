import type { Warehouse } from '../../../../db/connect.ts';

/** A piece of what a deployment does, on one plot of the warehouse. */
export interface Work {
  /** What is done, in words. */
  readonly name: string;
  /** Records, or events, that it is about: each may be looked up in a tree that is higher where there are many. */
  readonly rows: number;
  /** Why it may read all that there is, where it may. */
  readonly asksForAll?: string;
  /** Done before, and not measured. */
  prepare?(warehouse: Warehouse, plot: number): Promise<unknown>;
  run(warehouse: Warehouse, plot: number): Promise<unknown>;
}

/** When the work of this test reads the service: after all that the plots hold. */
export const readAt = '2025-06-01T00:00:00Z';
export const readLater = '2025-06-02T00:00:00Z';
export const changedAt = '2025-05-01T00:00:00.000001';

/** Numbers `from` to `to`, both of them. */
export const numbers = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at);

import type { Warehouse } from '../../../../db/connection/connect.ts';

/** A unit of a deployment's work, on one plot of the warehouse. */
export interface Work {
  /** What is done, as the title of its test. */
  readonly name: string;
  /** How many records or events the work concerns. Each may be looked up in a higher index tree. */
  readonly rows: number;
  /** Why it may read whole tables, if it may. */
  readonly asksForAll?: string;
  /** Runs before `run`, and is not measured. */
  prepare?(warehouse: Warehouse, plot: number): Promise<unknown>;
  run(warehouse: Warehouse, plot: number): Promise<unknown>;
}

/** When this work reads the service. It is later than all rows of the plots. */
export const readAt = '2025-06-01T00:00:00Z';
export const readLater = '2025-06-02T00:00:00Z';
export const changedAt = '2025-05-01T00:00:00.000001';

/** The numbers `from` to `to`, inclusive. */
export const numbers = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at);

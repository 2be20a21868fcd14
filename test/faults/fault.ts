import { test } from 'vitest';
import type { Figures } from './verdict.ts';

/** What one run of a fault came to, for docs/reliability.md. */
export interface FaultReport {
  readonly fault: string;
  readonly title: string;
  readonly seed: number;
  readonly seconds: number;
  /** Events a second that the service made while the fault lasted; absent where the fault decides that itself. */
  readonly perSecond?: number;
  /** What was done, in a few words with figures: "10 x kill -9". */
  readonly injected: string;
  readonly figures: Figures;
}

declare module 'vitest' {
  interface TaskMeta {
    fault?: FaultReport;
  }
}

export type Found = Pick<FaultReport, 'injected' | 'figures' | 'perSecond'>;

/** A line for whoever watches or repeats the run. */
export const say = (line: string): boolean => process.stdout.write(`${line}\n`);

/** The seeds of this run: FAULTS_SEED is the first, FAULTS_SEEDS says how many. */
export function seeds(): number[] {
  const first = Number(process.env.FAULTS_SEED ?? 1);
  return Array.from({ length: Number(process.env.FAULTS_SEEDS ?? 1) }, (_, more) => first + more);
}

/** How many times as often as by default a run strikes: FAULTS_TIMES. */
export const times = (byDefault: number): number => byDefault * Number(process.env.FAULTS_TIMES ?? 1);

/** A hung run is ended after so long; nothing that passes is decided by it. */
const timeout = 1_800_000;

/** A fault of the list, once for each of the seeds. */
export function fault(
  name: string,
  title: string,
  chosen: readonly number[],
  inject: (seed: number) => Promise<Found>,
): void {
  test.for(chosen)(`${name} ${title}, seed %i`, { timeout }, async (seed, { task }) => {
    const startedAt = performance.now();
    const found = await inject(seed);
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    task.meta.fault = { fault: name, title, seed, seconds, ...found };
  });
}

import { join } from 'node:path';
import { type Calls, type Child, startChild } from './child.ts';
import type { Size } from './size.ts';
import type { BenchStack } from './stack.ts';

/** Figures by name. A figure that could not be measured is an error, never a number. */
export type Figures = Readonly<Record<string, number>>;

/** The tools of a measure. */
export interface Bench {
  readonly stack: BenchStack;
  readonly size: Size;
  /** Reports the progress to a person. */
  say(line: string): void;
  /** Starts a process of the bench, which is stopped after the measure. */
  child<C extends Calls>(script: string): Child<C>;
  /** Registers a clean-up for the end of the measure, also after a failure. The last one runs first. */
  atEnd(cleanUp: () => Promise<void>): void;
}

/** One entry of `npm run bench`. */
export interface Measure {
  readonly name: string;
  /** One line of `--help`. */
  readonly about: string;
  /** Left out when all measures are taken, because it takes too long or fetches other programs. */
  readonly onlyByName?: boolean;
  run(bench: Bench): Promise<Figures>;
}

/** Runs a measure and stops all that it started, also after a failure. */
export async function runMeasure(
  measure: Measure,
  given: Pick<Bench, 'stack' | 'size' | 'say'>,
): Promise<Figures> {
  const cleanUps: (() => Promise<void>)[] = [];
  const output = join(given.stack.dir, 'logs', 'bench.log');
  const bench: Bench = {
    ...given,
    atEnd: (cleanUp) => cleanUps.push(cleanUp),
    child: <C extends Calls>(script: string) => {
      const child = startChild<C>(script, output);
      cleanUps.push(() => child.stop());
      return child;
    },
  };
  try {
    const figures = await measure.run(bench);
    const missing = Object.entries(figures).filter(([, figure]) => !Number.isFinite(figure));
    if (missing.length > 0) {
      throw new Error(`${measure.name}: not measured: ${missing.map(([name]) => name).join(', ')}`);
    }
    return figures;
  } finally {
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }
}

/** Returns the median figure of several rounds. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  const [low, high] = [sorted[Math.floor(middle)], sorted[Math.ceil(middle)]];
  if (low === undefined || high === undefined) throw new Error('nothing was measured');
  return (low + high) / 2;
}

/** Returns the median of each figure over several rounds, which have the same figures. */
export function medians(rounds: readonly Figures[]): Figures {
  const names = Object.keys(rounds[0] ?? {});
  return Object.fromEntries(
    names.map((name) => [name, median(rounds.map((figures) => figures[name] ?? Number.NaN))]),
  );
}

/** Returns how many milliseconds the work takes. */
export async function msOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** Returns how many seconds the work takes. */
export const secondsOf = async (work: () => Promise<unknown>): Promise<number> => (await msOf(work)) / 1000;

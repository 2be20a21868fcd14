import { join } from 'node:path';
import { type Child, startChild } from './process/child.ts';
import type { Calls } from './process/serve.ts';
import type { Size } from './size.ts';
import type { BenchStack } from './stack.ts';

/** Numbers by name. A figure that could not be measured is an error, never a number. */
export type Figures = Readonly<Record<string, number>>;

/** What a measure works with. */
export interface Bench {
  readonly stack: BenchStack;
  readonly size: Size;
  /** Tells a person what is being measured. */
  say(line: string): void;
  /** Where processes write a CPU profile when they end; none when undefined. */
  readonly profileDir?: string | undefined;
  /** A process of the bench; whatever still runs when the measure is over is stopped. */
  child<C extends Calls>(script: string): Child<C>;
  /** Done when the measure is over, last first, also when it failed. */
  atEnd(cleanUp: () => Promise<void>): void;
}

/** One entry of `npm run bench`. */
export interface Measure {
  readonly name: string;
  /** One line of `--help`. */
  readonly about: string;
  /** Takes too long for a run of all, or fetches what is not here. */
  readonly onlyByName?: boolean;
  run(bench: Bench): Promise<Figures>;
}

/** Runs a measure and stops what it started, whatever became of it. */
export async function runMeasure(
  measure: Measure,
  given: Pick<Bench, 'stack' | 'size' | 'say' | 'profileDir'>,
): Promise<Figures> {
  const cleanUps: (() => Promise<void>)[] = [];
  const output = join(given.stack.dir, 'logs', 'bench.log');
  const bench: Bench = {
    ...given,
    atEnd: (cleanUp) => cleanUps.push(cleanUp),
    child: <C extends Calls>(script: string) => {
      const child = startChild<C>(script, { output, profileDir: given.profileDir });
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

/** The middle one of some rounds' figures. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  const [low, high] = [sorted[Math.floor(middle)], sorted[Math.ceil(middle)]];
  if (low === undefined || high === undefined) throw new Error('nothing was measured');
  return (low + high) / 2;
}

import { test } from 'vitest';
import { type Figures, type Measure, runMeasure } from '../../bench/measure.ts';
import { acknowledged } from '../../bench/measures/acknowledged.ts';
import { backfill } from '../../bench/measures/backfill.ts';
import { lone } from '../../bench/measures/lone.ts';
import { sizes } from '../../bench/size.ts';
import { type BenchStack, startBenchStack } from '../../bench/stack.ts';
import { say } from '../faults/fault.ts';
import { startCluster } from './cluster.ts';
import type { Rates } from './rates.ts';

const measures: readonly Measure[] = [acknowledged, backfill, lone];

test('T7 rates compared with the development server', { timeout: 1_800_000 }, async ({ task }) => {
  const developmentServer = await measured(await startBenchStack());
  const cluster = await startCluster(say);
  try {
    const rates: Rates = {
      developmentServer,
      cluster: await measured(await startBenchStack(cluster.address)),
    };
    task.meta.rates = rates;
  } finally {
    await cluster.stop();
  }
});

/** Runs the measures on a stack, and stops the stack. */
async function measured(stack: BenchStack): Promise<Record<string, Figures>> {
  try {
    const figures: Record<string, Figures> = {};
    for (const measure of measures) {
      const sayOf = (line: string) => void say(`${measure.name}: ${line}`);
      figures[measure.name] = await runMeasure(measure, { stack, size: sizes.quick, say: sayOf });
    }
    return figures;
  } finally {
    await stack.stop();
  }
}

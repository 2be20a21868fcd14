import { test } from 'vitest';
import { type LoadReport, percentile, perSecond } from '../../bench/load.ts';
import { type Bench, type Figures, type Measure, runMeasure } from '../../bench/measure.ts';
import { backfill } from '../../bench/measures/backfill.ts';
import { lone } from '../../bench/measures/lone.ts';
import { startGenerator, startPipeline } from '../../bench/pipeline.ts';
import { sizeOf } from '../../bench/size.ts';
import { type BenchStack, startBenchStack, withClient } from '../../bench/stack.ts';
import { untilReceived } from '../../bench/warehouse.ts';
import { say } from '../faults/fault.ts';
import { startCluster } from './cluster.ts';
import type { Rates } from './rates.ts';

const acknowledged: Measure = {
  name: 'acknowledged',
  about: 'events acknowledged per second, the worker recording them meanwhile',
  run: measureAcknowledged,
};

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
      figures[measure.name] = await runMeasure(measure, { stack, size: sizeOf('quick'), say: sayOf });
    }
    return figures;
  } finally {
    await stack.stop();
  }
}

async function measureAcknowledged(bench: Bench): Promise<Figures> {
  const { warmUpEvents, events512, events64 } = bench.size;
  const generator = startGenerator(bench);
  const pipeline = await startPipeline(bench);
  /** Sends events, and waits until all are recorded, so that nothing is left to do for the next load. */
  const load = async (events: number, inFlight: number): Promise<LoadReport> => {
    const report = await generator.send(pipeline, { count: events }, inFlight);
    await withClient(pipeline.databaseUrl, (client) => untilReceived(client, report.beganAt, events));
    return report;
  };
  await load(warmUpEvents, 512);
  const with512 = await load(events512, 512);
  await load(warmUpEvents, 64);
  const with64 = await load(events64, 64);
  return {
    perSecond512: perSecond([with512]),
    perSecond64: perSecond([with64]),
    p99Ms512: percentile(with512.latencies, 99),
  };
}

import { join } from 'node:path';
import { fillWarehouse } from '../load/fill-warehouse.ts';
import { newSecret } from '../load/signed.ts';
import type { Bench } from '../measure.ts';
import type { Child } from '../process/child.ts';
import type { NamedPlace } from '../stack.ts';
import type { BareCalls } from './bare.ts';
import type { Grouping, PipelineCalls, PipelineInput } from './process.ts';

/** A receiver that takes a load. */
export interface Target {
  readonly port: number;
  readonly secret: string;
}

export interface Pipeline extends Target {
  readonly process: Child<PipelineCalls>;
  readonly databaseUrl: string;
  readonly temporal: NamedPlace;
  /** Undefined without metrics. */
  readonly metricsUrl: string | undefined;
  /** Starts the parts again in the same process, whose code is compiled already. */
  restart(options: { readonly metrics: boolean }): Promise<Pipeline>;
}

/** Starts a deployment without metrics in its own process, on its own warehouse and Temporal namespace. */
export async function startPipeline(
  bench: Bench,
  options: {
    readonly grouping?: Grouping;
    /** If false, only the receiver is started. It starts workflows, but nothing runs them. */
    readonly worker?: boolean;
    readonly service?: NonNullable<PipelineInput['worker']>['service'];
    /** Whether the warehouse has the records from which the generator draws its events. */
    readonly filled?: boolean;
  } = {},
): Promise<Pipeline> {
  const { grouping = 'groups', worker = true, service, filled = true } = options;
  const { stack } = bench;
  // The child loads its modules while the servers prepare.
  const child = bench.child<PipelineCalls>('pipeline/process.ts');
  const [temporal, databaseUrl, bundlePath] = await Promise.all([
    stack.namespace(),
    stack.warehouse(),
    stack.workflowBundle(),
  ]);
  if (filled) await fillWarehouse(databaseUrl);
  const secret = newSecret();
  const work = { databaseUrl, bundlePath, ...(service === undefined ? {} : { service }) };
  const start = async (metrics: boolean): Promise<Pipeline> => {
    const { port, metricsUrl } = await child.call('start', {
      temporal,
      logFile: join(stack.dir, 'logs', 'bench.log'),
      receiver: { secret, grouping },
      ...(worker ? { worker: work } : {}),
      metrics,
    });
    const restart: Pipeline['restart'] = async (options) => {
      await child.call('stop', undefined);
      return await start(options.metrics);
    };
    return { process: child, port, secret, databaseUrl, temporal, metricsUrl, restart };
  };
  return await start(false);
}

/** Starts bare Fastify, the upper limit of a receiver. */
export async function startBare(bench: Bench): Promise<Target & { readonly process: Child<BareCalls> }> {
  const secret = newSecret();
  const child = bench.child<BareCalls>('pipeline/bare.ts');
  const { port } = await child.call('start', { secret });
  return { process: child, port, secret };
}

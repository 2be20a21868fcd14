import { join } from 'node:path';
import { fillWarehouse } from '../load/fill-warehouse.ts';
import { newSecret } from '../load/signed.ts';
import type { Bench } from '../measure.ts';
import type { Child } from '../process/child.ts';
import type { NamedPlace } from '../stack.ts';
import type { BareCalls } from './bare.ts';
import type { Grouping } from './compose.ts';
import type { PipelineCalls, PipelineInput } from './process.ts';

/** Somewhere to send a load to. */
export interface Target {
  readonly port: number;
  readonly secret: string;
}

export interface Pipeline extends Target {
  readonly process: Child<PipelineCalls>;
  readonly databaseUrl: string;
  readonly temporal: NamedPlace;
}

/** Starts a deployment in a process of its own, on a warehouse and a Temporal namespace of its own. */
export async function startPipeline(
  bench: Bench,
  options: {
    readonly grouping?: Grouping;
    /** False leaves the receiver alone: workflows are started and nobody runs them. */
    readonly worker?: boolean;
    readonly service?: NonNullable<PipelineInput['worker']>['service'];
    /** Whether the warehouse knows the world that the generator draws its events from. */
    readonly filled?: boolean;
  } = {},
): Promise<Pipeline> {
  const { grouping = 'groups', worker = true, service, filled = true } = options;
  const { stack } = bench;
  // It loads its modules while the servers make what it needs.
  const child = bench.child<PipelineCalls>('pipeline/process.ts');
  const [temporal, databaseUrl, bundlePath] = await Promise.all([
    stack.namespace(),
    stack.warehouse(),
    stack.workflowBundle(),
  ]);
  if (filled) await fillWarehouse(databaseUrl);
  const secret = newSecret();
  const work = { databaseUrl, bundlePath, ...(service === undefined ? {} : { service }) };
  const { port } = await child.call('start', {
    temporal,
    logFile: join(stack.dir, 'logs', 'bench.log'),
    receiver: { secret, grouping },
    ...(worker ? { worker: work } : {}),
  });
  return { process: child, port, secret, databaseUrl, temporal };
}

/** Starts what a receiver is held against. */
export async function startBare(bench: Bench): Promise<Target & { readonly process: Child<BareCalls> }> {
  const secret = newSecret();
  const child = bench.child<BareCalls>('pipeline/bare.ts');
  const { port } = await child.call('start', { secret });
  return { process: child, port, secret };
}

import { join } from 'node:path';
import { fillWarehouse } from '../load/fill-warehouse.ts';
import { newSecret } from '../load/signed.ts';
import type { Bench } from '../measure.ts';
import type { Child } from '../process/child.ts';
import type { NamedPlace } from '../stack.ts';
import type { PipelineCalls, PipelineInput } from './process.ts';

/** A receiver that takes a load. */
export interface Target {
  readonly port: number;
  readonly secret: string;
}

export interface Pipeline extends Target {
  readonly process: Child<PipelineCalls>;
  readonly databaseUrl: string;
  readonly temporal: NamedPlace;
}

/** Starts a deployment in its own process, on its own warehouse and Temporal namespace. */
export async function startPipeline(
  bench: Bench,
  options: {
    readonly service?: PipelineInput['service'];
    /** Whether the warehouse has the records from which the generator draws its events. */
    readonly filled?: boolean;
  } = {},
): Promise<Pipeline> {
  const { service, filled = true } = options;
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
  const { port } = await child.call('start', {
    temporal,
    logFile: join(stack.dir, 'logs', 'bench.log'),
    secret,
    databaseUrl,
    bundlePath,
    ...(service === undefined ? {} : { service }),
  });
  return { process: child, port, secret, databaseUrl, temporal };
}

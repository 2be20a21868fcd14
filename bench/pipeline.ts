import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { startBackfill } from '../app/backfill.ts';
import { connectClient } from '../app/temporal/client.ts';
import type { TemporalPlace } from '../app/temporal/place.ts';
import { type RunState, workflowIds } from '../contract/names.ts';
import { connectWarehouse } from '../db/connection/connect.ts';
import type { Child } from './child.ts';
import type { PipelineCalls, PipelineInput } from './deployment.ts';
import type { GeneratorCalls, PrepareInput } from './generator.ts';
import { type LoadReport, newSecret } from './load.ts';
import type { Bench } from './measure.ts';
import type { NamedPlace } from './stack.ts';
import { fillWarehouse } from './world.ts';

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
  const child = bench.child<PipelineCalls>('deployment.ts');
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

/** A load generator in its own process. */
export interface Generator {
  readonly pid: number;
  /** Signs the events and then sends them. Signing is not timed. */
  send(target: Target, events: PrepareInput['events'], inFlight: number): Promise<LoadReport>;
}

export function startGenerator(bench: Bench): Generator {
  const child: Child<GeneratorCalls> = bench.child<GeneratorCalls>('generator.ts');
  return {
    pid: child.pid,
    send: async ({ port, secret }, events, inFlight) => {
      await child.call('prepare', { secret, events });
      return await child.call('send', { port, inFlight });
    },
  };
}

/** Runs work with a client of a namespace, and closes the client. */
export async function withTemporal<T>(
  place: TemporalPlace,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const { client, close } = await connectClient(place);
  try {
    return await work(client);
  } finally {
    await close();
  }
}

/**
 * Backfills the given companies, or all, through the real workflows, and returns the seconds. It also waits
 * for the following checks of the data, which would disturb the next measurement.
 * @throws Error if the run did not end as complete
 */
export async function runBackfill(
  { temporal, databaseUrl }: Pick<Pipeline, 'temporal' | 'databaseUrl'>,
  companies?: readonly string[],
): Promise<number> {
  const warehouse = connectWarehouse({ url: databaseUrl, timeZone: 'UTC', max: 1, onError: () => {} });
  try {
    return await withTemporal(temporal, async (client) => {
      const began = performance.now();
      const runId = await startBackfill(client, companies && { db: warehouse.db, companies });
      const state = (await client.workflow.getHandle(workflowIds.backfill(runId)).result()) as RunState;
      if (state !== 'complete') throw new Error(`the backfill ended ${state}`);
      const seconds = (performance.now() - began) / 1000;
      await client.workflow.getHandle(workflowIds.checkData(runId)).result();
      return seconds;
    });
  } finally {
    await warehouse.close();
  }
}

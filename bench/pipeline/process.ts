/** The process of a deployment: receiver, worker, or both in one, as `npm start` has them. */

import { createLog } from '../../app/log.ts';
import type { Running } from '../../app/running.ts';
import { readSettings } from '../../app/settings.ts';
import { installRuntime } from '../../app/temporal-native.ts';
import type { TemporalPlace } from '../../app/temporal-place.ts';
import type { EndpointCatalogue } from '../../contract/endpoints.ts';
import type { Start } from '../../receiver/start-group.ts';
import { serve } from '../process/serve.ts';
import { type Grouping, startBenchReceiver, startBenchWorkers } from './compose.ts';

export interface PipelineInput {
  readonly temporal: TemporalPlace;
  readonly logFile: string;
  readonly receiver?: { readonly secret: string; readonly grouping: Grouping };
  readonly worker?: {
    readonly databaseUrl: string;
    readonly bundlePath: string;
    /** Where catching up and backfills read; without it they are off. */
    readonly service?: {
      readonly url: string;
      readonly apiKey: string;
      readonly endpoints?: Partial<EndpointCatalogue>;
    };
  };
}

export type PipelineCalls = ReturnType<typeof createPipeline>['calls'];

function createPipeline() {
  const running: Running[] = [];
  let stopping = false;
  const calls = {
    start: async ({ temporal, logFile, receiver, worker }: PipelineInput): Promise<{ port: number }> => {
      const log = createLog({ level: 'warn', file: logFile });
      installRuntime(log);
      let startHere: Start | undefined;
      if (worker !== undefined) {
        const { databaseUrl, bundlePath, service } = worker;
        const plain = readSettings({});
        const endpoints = { ...plain.service.endpoints, ...service?.endpoints };
        const settings = { ...plain, service: { ...plain.service, endpoints } };
        const work = { settings, temporal, databaseUrl, bundlePath, service, log };
        const workers = await startBenchWorkers(work);
        running.push(workers);
        workers.finished.catch((error: unknown) => {
          log.error({ err: error }, 'a worker ended');
          // While it is stopped, Temporal's core may say that something still holds it. Else nothing would work on.
          if (!stopping) process.exit(1);
        });
        ({ startHere } = workers);
      }
      if (receiver === undefined) return { port: 0 };
      const started = await startBenchReceiver({ temporal, ...receiver, startHere, log });
      running.push(started);
      return { port: started.port };
    },
    /** Resident memory of this process in bytes. */
    memory: async (): Promise<number> => process.memoryUsage().rss,
  };
  return {
    calls,
    stop: async () => {
      stopping = true;
      await Promise.all(running.map((part) => part.stop()));
    },
  };
}

const pipeline = createPipeline();
serve(pipeline.calls, pipeline.stop);

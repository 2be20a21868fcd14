/** The process of a deployment: receiver and worker in one, as `npm start` runs them, but without metrics. */
import { createLog } from '../app/process/log.ts';
import type { Running } from '../app/process/running.ts';
import { startReceiver } from '../app/receiver-part.ts';
import { readSettings } from '../app/settings/settings.ts';
import { installRuntime } from '../app/temporal/native.ts';
import type { TemporalPlace } from '../app/temporal/place.ts';
import { startWorker, type WorkerOverrides } from '../app/worker-part.ts';
import type { EndpointCatalogue } from '../contract/endpoints.ts';
import { healthOf } from '../operations/health.ts';
import { fixedSecrets } from '../receiver/secrets.ts';
import type { Start } from '../receiver/starts.ts';
import { serve } from './child.ts';
import { withClient } from './stack.ts';

/** Without a service, nothing is read: the gate for requests is closed, the sweep is not started, and no schedule runs. */
const eventsAlone: WorkerOverrides = {
  dependencies: { startSweep: async () => {}, backfillFirst: async () => {} },
  ownSchedules: false,
};
const closed = `
  insert into metersync.gates (scope, code, message, attempts, next_probe_at)
  values ('service', 'SERVICE_KEY_REFUSED', 'the bench has no service', 1, 'infinity')
  on conflict do nothing`;
const nowhere = { url: 'http://127.0.0.1:9/v2.2', apiKey: 'none' };

export interface PipelineInput {
  readonly temporal: TemporalPlace;
  readonly logFile: string;
  readonly secret: string;
  readonly databaseUrl: string;
  readonly bundlePath: string;
  /** The service that catch-ups and backfills read. Without it they are off. */
  readonly service?: {
    readonly url: string;
    readonly apiKey: string;
    readonly endpoints?: Partial<EndpointCatalogue>;
  };
}

export type PipelineCalls = ReturnType<typeof createPipeline>['calls'];

function createPipeline() {
  const running: Running[] = [];
  let stopping = false;
  let startHere: Start | undefined;
  const stop = async (): Promise<void> => {
    stopping = true;
    await Promise.all(running.splice(0).map((part) => part.stop()));
  };
  const calls = {
    start: async ({
      temporal,
      logFile,
      secret,
      databaseUrl,
      bundlePath,
      service,
    }: PipelineInput): Promise<{ port: number }> => {
      stopping = false;
      const log = createLog({ level: 'warn', file: logFile });
      const settings = readSettings({});
      // Temporal's runtime ends with its workers, and the next workers bring their own options.
      installRuntime(log);
      if (service === undefined) await withClient(databaseUrl, (client) => client.query(closed));
      const endpoints = { ...settings.service.endpoints, ...service?.endpoints };
      const workers = await startWorker(
        {
          settings: {
            ...settings,
            service: { ...settings.service, endpoints },
            schedules: { full: undefined, reconcile: undefined },
          },
          service: service ?? nowhere,
          databaseUrl,
          temporal,
          readHealth: healthOf({ settings, databaseUrl, temporal }),
          log,
        },
        { workflowBundle: { codePath: bundlePath }, ...(service === undefined ? eventsAlone : {}) },
      );
      running.push(workers);
      workers.finished.catch((error: unknown) => {
        log.error({ err: error }, 'a worker ended');
        // During a stop, Temporal's core may report that something still holds it. At any other time the
        // deployment could not go on.
        if (!stopping) process.exit(1);
      });
      startHere = workers.startHere;
      const started = await startReceiver({
        settings: { ...settings, receiver: { host: '127.0.0.1', port: 0 } },
        secrets: fixedSecrets([secret]),
        temporal,
        temporalWait: { isThere: () => true },
        startHere: () => startHere,
        log,
      });
      running.push(started);
      return { port: Number(new URL(started.url).port) };
    },
    /** Stops the parts. After that, others may be started. */
    stop,
    /** Starts groups without events, one after the other: what a workflow that does nothing costs. */
    startEmptyGroups: async (count: number): Promise<void> => {
      const start = startHere;
      if (start === undefined) throw new Error('no worker runs here that could take an eager start');
      for (let left = count; left > 0; left -= 1) {
        await start({ workflowId: `empty:${left}`, group: { events: [] }, withinMs: 5_000 });
      }
    },
    /** Returns the resident memory of this process in bytes. */
    memory: async (): Promise<number> => process.memoryUsage().rss,
  };
  return { calls, stop };
}

const pipeline = createPipeline();
serve(pipeline.calls, pipeline.stop);

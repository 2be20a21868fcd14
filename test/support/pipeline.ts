import { sql } from 'drizzle-orm';
import { createDeployment, type Deployment, type Endpoints } from './deployment.ts';
import { until } from './poll.ts';
import { freePort } from './port.ts';
import type { Part } from './run-part.ts';
import { type SandboxSize, startSandbox, type TestSandbox } from './sandbox.ts';
import { isAllDone } from './work-left.ts';

export interface PipelineOptions {
  readonly size?: SandboxSize;
  /** Further options of the sandbox. */
  readonly sandbox?: Parameters<typeof startSandbox>[1];
  /** Entries of SERVICE_ENDPOINTS. */
  readonly endpoints?: Endpoints;
  /** Parts that run from the start, in this process; both when not given. */
  readonly parts?: readonly Part[];
}

/** Everything from the service to rows. */
export interface Pipeline extends Deployment {
  readonly service: TestSandbox;
  /** Waits until all events are delivered, applied and their records read again. */
  settled(timeoutMs?: number): Promise<void>;
}

/** Starts a sandbox and a deployment whose endpoint is registered with it. */
export async function startPipeline(options: PipelineOptions = {}): Promise<Pipeline> {
  const [service, port] = await Promise.all([startSandbox(options.size, options.sandbox), freePort()]);
  const deployment = await createDeployment({
    endpoints: options.endpoints,
    env: {
      SERVICE_URL: service.apiUrl,
      SERVICE_API_KEY: service.apiKey,
      WEBHOOK_SECRETS: await service.register(`http://127.0.0.1:${port}/webhooks`),
      RECEIVER_PORT: String(port),
    },
  });
  await Promise.all((options.parts ?? ['worker', 'receiver']).map((part) => deployment.run(part)));
  return {
    ...deployment,
    service,
    settled: (timeoutMs) => settled(service, deployment, timeoutMs),
    stop: async () => {
      await Promise.all([deployment.stop(), service.stop()]);
    },
  };
}

/** Waits in steps. Each step waits for work that may have been started by the work of the previous step. */
async function settled(service: TestSandbox, deployment: Deployment, timeoutMs = 60_000): Promise<void> {
  const within = { timeoutMs, everyMs: 100 };
  await until('the service has delivered everything', async () => (await service.status()).quiet, within);
  const acknowledged = await service.delivered();
  await until(
    'every acknowledged event is in the journal',
    async () => (await missingFrom(deployment, acknowledged)) === 0,
    within,
  );
  await until('nothing runs and nothing is pending', () => isAllDone(deployment, ['sweep']), within);
}

async function missingFrom({ warehouse }: Deployment, eventIds: readonly string[]): Promise<number> {
  const journal = await warehouse.db.execute<{ id: string }>(sql`select id from metersync.journal`);
  const recorded = new Set(journal.rows.map(({ id }) => id));
  return eventIds.filter((id) => !recorded.has(id)).length;
}

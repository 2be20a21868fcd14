import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { inject } from 'vitest';
import { type AuditReport, audit } from '../../app/audit.ts';
import { startBackfill } from '../../app/backfill.ts';
import { openService } from '../../app/service.ts';
import { readSettings } from '../../app/settings.ts';
import type { SandboxSize } from '../../cli/sandbox-process.ts';
import type { EndpointName } from '../../contract/endpoints.ts';
import { type RunState, workflowIds } from '../../contract/names.ts';
import { readStatus } from '../../db/read/status.ts';
import { type RunningCommand, startCommand } from './command.ts';
import { temporaryFolder } from './folder.ts';
import { createNamespace } from './namespace.ts';
import { until } from './poll.ts';
import { freePort } from './port.ts';
import { startSandbox, type TestSandbox } from './sandbox.ts';
import { createWarehouse } from './warehouse.ts';

export interface PipelineOptions {
  readonly size?: Partial<SandboxSize>;
  /** Entries of SERVICE_ENDPOINTS. */
  readonly endpoints?: Partial<Record<EndpointName, object | null>>;
  /** Which parts run from the start; both when not given. */
  readonly parts?: readonly Part[];
}

export type Part = 'worker' | 'receiver';

/** The whole way from the service to rows: every part real, and a process of its own where it is one for a user. */
export interface Pipeline {
  readonly service: TestSandbox;
  readonly warehouse: Awaited<ReturnType<typeof createWarehouse>>;
  readonly client: Client;
  /** What the parts are started with. */
  readonly env: Readonly<Record<string, string>>;
  /** Where the service delivers to. */
  readonly webhooksUrl: string;
  start(part: Part): Promise<RunningCommand>;
  /** The part that was started last. */
  part(part: Part): RunningCommand;
  /** Runs a backfill to its end. */
  backfill(companies?: readonly string[]): Promise<RunState>;
  /** Waits until everything was delivered, applied and read again. */
  settled(timeoutMs?: number): Promise<void>;
  audit(): Promise<AuditReport>;
  stop(): Promise<void>;
}

/** Starts a pipeline on databases and a Temporal namespace of its own, its endpoint registered with the service. */
export async function startPipeline(options: PipelineOptions = {}): Promise<Pipeline> {
  const [service, warehouse, namespace, folder, port] = await Promise.all([
    startSandbox(options.size),
    createWarehouse(),
    createNamespace(),
    temporaryFolder(),
    freePort(),
  ]);
  const webhooksUrl = `http://127.0.0.1:${port}/webhooks`;
  const env: Record<string, string> = {
    DATABASE_URL: warehouse.url,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TEMPORAL_NAMESPACE: namespace,
    SERVICE_URL: service.apiUrl,
    SERVICE_API_KEY: service.apiKey,
    WEBHOOK_SECRETS: await service.register(webhooksUrl),
    RECEIVER_PORT: String(port),
    METERSYNC_DIR: folder.path,
    ...(await endpointsFile(folder.path, options.endpoints)),
  };
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const client = new Client({ connection, namespace });
  const running = new Map<Part, RunningCommand>();
  const ready = { worker: /worker: running/, receiver: /receiver: POST/ } as const;

  const pipeline: Pipeline = {
    service,
    warehouse,
    client,
    env,
    webhooksUrl,
    start: async (part) => {
      const command = startCommand([part], { env });
      running.set(part, command);
      await command.printed(ready[part]);
      return command;
    },
    part: (part) => {
      const command = running.get(part);
      if (command === undefined) throw new Error(`no ${part} was started`);
      return command;
    },
    backfill: async (companies) => {
      const runId = await startBackfill(client, companies);
      return await client.workflow.getHandle(workflowIds.backfillAll(runId)).result();
    },
    settled: (timeoutMs) => settled(pipeline, timeoutMs),
    audit: () => auditOf(pipeline),
    stop: async () => {
      await Promise.all([...running.values()].map((command) => command.end('SIGKILL')));
      await connection.close();
      await Promise.all([service.stop(), warehouse.drop(), folder.remove()]);
    },
  };
  await Promise.all((options.parts ?? ['worker', 'receiver']).map((part) => pipeline.start(part)));
  return pipeline;
}

async function endpointsFile(
  dir: string,
  endpoints: PipelineOptions['endpoints'],
): Promise<Record<string, string>> {
  if (endpoints === undefined) return {};
  const path = join(dir, 'endpoints.json');
  await writeFile(path, JSON.stringify(endpoints));
  return { SERVICE_ENDPOINTS: path };
}

/** In this order, each step covers what the one before may have set off. */
async function settled(pipeline: Pipeline, timeoutMs = 60_000): Promise<void> {
  const { service, warehouse } = pipeline;
  const within = { timeoutMs, everyMs: 100 };
  await until('the service has delivered everything', async () => (await service.status()).quiet, within);
  await until('nothing runs and nothing is pending', () => nothingIsLeft(pipeline), within);
  const journalled = await warehouse.db.execute<{ id: string }>(sql`select id from metersync.events`);
  const known = new Set(journalled.rows.map(({ id }) => id));
  const lost = (await service.delivered()).filter((id) => !known.has(id));
  if (lost.length > 0)
    throw new Error(`${lost.length} acknowledged events are not in the journal: ${lost[0]}`);
}

/** A group that waits in Temporal is in no table yet, and a backfill has no row before it begins. */
async function nothingIsLeft({ client, warehouse }: Pipeline): Promise<boolean> {
  const open = async () =>
    (await client.workflow.count(`ExecutionStatus = 'Running' and WorkflowType != 'catchUp'`)).count;
  if ((await open()) > 0) return false;
  const { events, backfills } = await readStatus(warehouse.db);
  return events.pending === 0 && backfills.running === 0 && (await open()) === 0;
}

async function auditOf({ warehouse, env }: Pipeline): Promise<AuditReport> {
  const settings = readSettings(env);
  const { url = '', apiKey = '' } = settings.service;
  const { client } = openService(settings.service, url, apiKey, pino({ level: 'silent' }));
  try {
    return await audit({ warehouse, service: client });
  } finally {
    await client.close();
  }
}

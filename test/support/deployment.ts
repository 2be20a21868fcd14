import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { pino } from 'pino';
import { inject } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import type { Running } from '../../app/process/running.ts';
import { openService } from '../../app/service.ts';
import { readSettings } from '../../app/settings/settings.ts';
import { retries } from '../../app/temporal/client.ts';
import type { EndpointName } from '../../contract/endpoints.ts';
import { type RunState, workflowIds } from '../../contract/names.ts';
import { type AuditReport, audit } from '../../operations/audit/audit.ts';
import { type RunningCommand, startCommand, withoutThreads } from './command-process.ts';
import { temporaryFolder } from './folder.ts';
import { createNamespace } from './namespace.ts';
import { type Part, runPart } from './run-part.ts';
import { createWarehouse } from './warehouse.ts';

export type Endpoints = Partial<Record<EndpointName, object | null>>;

/** A receiver and a worker, in this process or in their own processes, with their servers. */
export interface Deployment {
  readonly warehouse: Awaited<ReturnType<typeof createWarehouse>>;
  readonly client: Client;
  /** Environment of the parts. */
  readonly env: Readonly<Record<string, string>>;
  /** Runs a part in this process. */
  run(part: Part, more?: Readonly<Record<string, string>>): Promise<Running>;
  /** Starts a part in its own process, for tests that kill it or read what it prints. */
  start(part: Part, more?: Readonly<Record<string, string>>): Promise<RunningCommand>;
  /** Returns the process that `start` started last for a part. */
  part(part: Part): RunningCommand;
  /** Runs a backfill to its end. */
  backfill(companies?: readonly string[]): Promise<RunState>;
  audit(): Promise<AuditReport>;
  stop(): Promise<void>;
}

const ready = { worker: /worker: running/, receiver: /receiver: POST/ } as const;

/** Prepares a deployment on its own database and Temporal namespace; no part runs until it is started. */
export async function createDeployment(options: {
  env: Readonly<Record<string, string>>;
  endpoints?: Endpoints | undefined;
}): Promise<Deployment> {
  const [warehouse, namespace, folder] = await Promise.all([
    createWarehouse(),
    createNamespace(),
    temporaryFolder(),
  ]);
  const address = inject('temporalAddress');
  const env: Record<string, string> = {
    DATABASE_URL: warehouse.url,
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    METERSYNC_DIR: folder.path,
    // No schedule starts a run in the middle of a test.
    BACKFILL_CRON: 'none',
    RECONCILE_EVERY: 'none',
    ...(await endpointsFile(folder.path, options.endpoints)),
    ...options.env,
  };
  const connection = await Connection.connect({ address, interceptors: [...retries] });
  const client = new Client({ connection, namespace });
  const processes = new Map<Part, RunningCommand>();
  const running: Running[] = [];
  return {
    warehouse,
    client,
    env,
    run: async (part, more = {}) => {
      const begun = await runPart(part, { ...env, ...more });
      running.push(begun);
      return begun;
    },
    start: async (part, more = {}) => {
      const command = startCommand([part], { env: { ...withoutThreads, ...env, ...more } });
      processes.set(part, command);
      await command.printed(ready[part]);
      return command;
    },
    part: (part) => {
      const command = processes.get(part);
      if (command === undefined) throw new Error(`no ${part} was started`);
      return command;
    },
    backfill: async (companies) => {
      const runId = await startBackfill(client, companies && { db: warehouse.db, companies });
      return await client.workflow.getHandle(workflowIds.backfill(runId)).result();
    },
    audit: () => auditOf(warehouse, env),
    stop: async () => {
      await Promise.all([
        ...running.map((part) => part.stop()),
        ...[...processes.values()].map((command) => command.end('SIGKILL')),
      ]);
      await connection.close();
      await Promise.all([warehouse.drop(), folder.remove()]);
    },
  };
}

async function endpointsFile(dir: string, endpoints: Endpoints | undefined): Promise<Record<string, string>> {
  if (endpoints === undefined) return {};
  const path = join(dir, 'endpoints.json');
  await writeFile(path, JSON.stringify(endpoints));
  return { SERVICE_ENDPOINTS: path };
}

async function auditOf(
  warehouse: Deployment['warehouse'],
  env: Readonly<Record<string, string>>,
): Promise<AuditReport> {
  const settings = readSettings(env);
  const { url = '', apiKey = '' } = settings.service;
  const { client } = openService(settings, url, apiKey, pino({ level: 'silent' }));
  try {
    return await audit({ warehouse, service: client, concurrency: 8 });
  } finally {
    await client.close();
  }
}

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection, type ConnectionOptions } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { childEnvironment } from '../../embedded/process.ts';
import { startEmbedded } from '../../embedded/start.ts';
import { accepts } from '../../embedded/temporal.ts';
import { createPart, type Part, together } from '../faults/part.ts';
import { launchServer } from '../faults/server-process.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { freePort } from '../support/port.ts';
import {
  configurationOf,
  kindOf,
  type Security,
  type ServiceName,
  type ServicePorts,
  serviceNames,
} from './configuration.ts';
import { type Programs, temporalPrograms } from './programs.ts';
import { makeSchema } from './schemas.ts';

/** A Temporal that consists of several processes, with its own Postgres. */
export interface Cluster {
  /** Host and port of the frontend. */
  readonly address: string;
  /** The services of the cluster, in the order of a rolling restart. */
  readonly services: readonly Part[];
  /** All services as one part. */
  readonly whole: Part;
  /** Creates a namespace, and returns once work can be started in it. */
  makeNamespace(name: string, connect?: ConnectionOptions): Promise<void>;
  stop(): Promise<void>;
}

const within = { timeoutMs: 300_000, everyMs: 50 };

/** Starts all services with new data, which `stop` removes; with security, also an internal frontend. */
export async function startCluster(say: (line: string) => void, security: Security = {}): Promise<Cluster> {
  const [programs, folder] = [await temporalPrograms(say), await temporaryFolder()];
  const postgres = await startEmbedded({ dir: folder.path, postgres: true, temporal: false });
  let services: readonly Part[] = [];
  const stop = async () => {
    await Promise.all(services.map((service) => service.kill()));
    await postgres.stop();
    await folder.remove();
  };
  try {
    const databases = await makeDatabases(programs, postgres.postgres);
    const isSecured = Object.keys(security).length > 0;
    const names: readonly ServiceName[] = isSecured ? [...serviceNames, 'internal-frontend'] : serviceNames;
    const ports = await portsFor(names);
    services = await Promise.all(
      names.map(async (name) => {
        const file = join(folder.path, `${name}.yaml`);
        // JSON is also YAML.
        await writeFile(file, JSON.stringify(configurationOf(name, ports, databases, security), null, 2));
        return serviceOf(name, { program: programs.server, file, dir: folder.path, port: ports[name].grpc });
      }),
    );
    const whole = together('temporal', services);
    const address = `127.0.0.1:${ports.frontend.grpc}`;
    await whole.start();
    return {
      address,
      services,
      whole,
      makeNamespace: (name, connect = {}) => makeNamespace(name, { address, ...connect }),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function makeDatabases(
  { sqlTool }: Programs,
  postgres: Awaited<ReturnType<typeof startEmbedded>>['postgres'],
): Promise<{ main: string; visibility: string }> {
  if (postgres === undefined) throw new Error('there is no Postgres');
  const main = await postgres.ensureDatabase('temporal');
  const visibility = await postgres.ensureDatabase('temporal_visibility');
  await Promise.all([makeSchema(sqlTool, main, 'temporal'), makeSchema(sqlTool, visibility, 'visibility')]);
  return { main, visibility };
}

async function portsFor(names: readonly ServiceName[]): Promise<Record<ServiceName, ServicePorts>> {
  const taken = new Set<number>();
  const another = async (): Promise<number> => {
    const port = await freePort();
    if (taken.has(port)) return await another();
    taken.add(port);
    return port;
  };
  const ports: Partial<Record<ServiceName, ServicePorts>> = {};
  for (const name of names) ports[name] = { grpc: await another(), membership: await another() };
  return ports as Record<ServiceName, ServicePorts>;
}

function serviceOf(
  name: ServiceName,
  { program, file, dir, port }: { program: string; file: string; dir: string; port: number },
): Part {
  return createPart(name, () =>
    launchServer(
      {
        command: program,
        args: ['--config-file', file, '--allow-no-auth', 'start', '--service', kindOf(name)],
        cwd: dir,
        env: childEnvironment(),
        logFile: join(dir, 'logs', `${name}.log`),
      },
      () => until(`${name} listens`, () => accepts(`127.0.0.1:${port}`), within),
    ),
  );
}

async function makeNamespace(namespace: string, options: ConnectionOptions): Promise<void> {
  const connection = Connection.lazy({ ...options, interceptors: [] });
  try {
    await until(
      `the namespace ${namespace} is made`,
      async () => {
        await connection.workflowService
          .registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs('1 day') })
          .catch((error: { code?: number }) => {
            // The namespace exists if the answer to an earlier attempt was lost.
            if (error.code !== alreadyExists) throw error;
          });
        return true;
      },
      within,
    );
    // The server's parts learn of the namespace one after another. Once work can be started, all know it.
    const client = new Client({ connection, namespace });
    await until(
      `work can be started in ${namespace}`,
      async () => {
        const probe = await client.workflow.start('probe', { taskQueue: 'probe', workflowId: 'probe' });
        await probe.terminate();
        return true;
      },
      within,
    );
  } finally {
    await connection.close();
  }
}

/** The number of the gRPC status ALREADY_EXISTS. */
const alreadyExists = 6;

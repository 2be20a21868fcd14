import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { Client, Connection } from '@temporalio/client';
import type { SandboxSize } from '../../cli/sandbox-process.ts';
import { connectWarehouse, type Warehouse } from '../../db/connect.ts';
import { prepareFolder } from '../../embedded/folder.ts';
import { choosePorts, isFree } from '../../embedded/ports.ts';
import { embeddedPostgres, postgresAnswers } from '../../embedded/postgres.ts';
import { postgresServer, preparePostgres } from '../../embedded/postgres-server.ts';
import type { ServerCommand } from '../../embedded/servers.ts';
import { temporalAnswers, temporalServer } from '../../embedded/temporal.ts';
import { findTemporalBinary } from '../../embedded/temporal-binary.ts';
import { temporalFetchers } from '../../embedded/temporal-fetchers.ts';
import { runCommand, startCommand } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { until } from '../support/poll.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { projectBinDir } from '../support/stack.ts';
import { createPart, type Life, type Part } from './part.ts';
import type { PartName } from './plan.ts';

/**
 * Receiver, worker, Temporal and Postgres, each a process that can be killed, paused and started again, and the
 * service that they sync from, whose data lies in another Postgres: it goes on whatever happens to them.
 */
export interface Rig {
  readonly parts: Readonly<Record<PartName, Part>>;
  readonly service: TestSandbox;
  readonly warehouse: Warehouse;
  readonly client: Client;
  /** What receiver, worker and commands are started with. It may be changed before a start. */
  readonly env: Record<string, string>;
  readonly receiverUrl: string;
  /** Runs `metersync` to its end, on the rig's settings. */
  run(args: readonly string[]): ReturnType<typeof runCommand>;
  /** Lines that a part printed, over all its lives. */
  said(part: 'receiver' | 'worker'): readonly string[];
  stop(): Promise<void>;
}

export interface RigOptions {
  readonly size?: Partial<SandboxSize>;
  /** Further options of sandbox/main.ts, by name. */
  readonly sandbox?: Readonly<Record<string, string | number>>;
  /** Folder of the servers' data, when it is not to be any. */
  readonly dataDir?: string;
  /** What stands between a part and Temporal, the service and the receiver: gives the address to use instead. */
  readonly between?: {
    temporal?(address: string): Promise<string>;
    receiver?(url: string): Promise<string>;
  };
  readonly env?: Readonly<Record<string, string>>;
}

export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const folder = await temporaryFolder();
  const dir = options.dataDir ?? folder.path;
  const [servers, service, receiverPort] = await Promise.all([
    prepareServers(dir),
    startSandbox(options.size, options.sandbox),
    steadyPort(),
  ]);
  const receiverUrl = `http://127.0.0.1:${receiverPort}/webhooks`;
  const between = options.between ?? {};
  const env: Record<string, string> = {
    TEMPORAL_ADDRESS: (await between.temporal?.(servers.temporalAddress)) ?? servers.temporalAddress,
    TEMPORAL_NAMESPACE: 'default',
    DATABASE_URL: servers.databaseUrl,
    METERSYNC_DIR: folder.path,
    SERVICE_URL: service.apiUrl,
    SERVICE_API_KEY: service.apiKey,
    WEBHOOK_SECRETS: await service.register((await between.receiver?.(receiverUrl)) ?? receiverUrl),
    RECEIVER_PORT: String(receiverPort),
    LOG_LEVEL: 'warn',
    ...options.env,
  };
  const lines = { receiver: [] as string[], worker: [] as string[] };
  const command = (part: 'receiver' | 'worker') =>
    createPart(part, () => launchCommand(part, env, lines[part]));
  const parts = {
    postgres: createPart('postgres', servers.postgres),
    temporal: createPart('temporal', servers.temporal),
    receiver: command('receiver'),
    worker: command('worker'),
  };
  await Promise.all([parts.postgres.start(), parts.temporal.start()]);
  await servers.createDatabase();
  const run = (args: readonly string[]) => runCommand(args, { env: { ...env, LOG_LEVEL: 'error' } });
  const migrated = await run(['migrate']);
  if (migrated.status !== 0) throw new Error(`metersync migrate: ${migrated.stderr}`);
  await Promise.all([parts.receiver.start(), parts.worker.start()]);
  const warehouse = connectWarehouse({
    url: servers.databaseUrl,
    timeZone: 'UTC',
    max: 4,
    onError: () => {},
  });
  const connection = Connection.lazy({ address: servers.temporalAddress });
  return {
    parts,
    service,
    warehouse,
    client: new Client({ connection, namespace: 'default' }),
    env,
    receiverUrl,
    run,
    said: (part) => lines[part],
    stop: async () => {
      await warehouse.close();
      await connection.close();
      for (const part of [parts.receiver, parts.worker, parts.temporal]) await part.kill();
      // All of its processes, and what they hold, are gone when this one is.
      await parts.postgres.stop('SIGQUIT');
      await service.stop();
      await folder.remove();
    },
  };
}

async function prepareServers(dir: string) {
  prepareFolder(dir);
  const [prepared, binary] = await Promise.all([
    preparePostgres(dir, () => {}),
    findTemporalBinary({
      explicit: undefined,
      searchPath: process.env.PATH ?? '',
      cacheDir: projectBinDir(),
      fetchers: temporalFetchers(),
      log: () => {},
    }),
  ]);
  const ports = await choosePorts(dir);
  const postgres = postgresServer(prepared, ports.postgres);
  const temporal = temporalServer({ dir, binary, port: ports.temporal, uiPort: ports.temporalUi });
  const within = { timeoutMs: 300_000, everyMs: 50 };
  return {
    postgres: () =>
      launchServer(postgres.server, () =>
        until('Postgres answers', () => postgresAnswers(postgres.address), within),
      ),
    temporal: () =>
      launchServer(temporal.server, () =>
        until('Temporal answers', () => temporalAnswers(temporal.address), within),
      ),
    temporalAddress: temporal.address.address,
    databaseUrl: embeddedPostgres(postgres.address).url('metersync'),
    createDatabase: () => embeddedPostgres(postgres.address).ensureDatabase('metersync'),
  };
}

function launchServer(server: ServerCommand, answers: () => Promise<unknown>): Life {
  const log = openSync(server.logFile, 'a', 0o600);
  const child = spawn(server.command, server.args, {
    cwd: server.cwd,
    env: { ...process.env, ...server.env },
    stdio: ['ignore', log, log],
    ...server.user,
  });
  closeSync(log);
  const killWithUs = () => child.kill('SIGKILL');
  process.once('exit', killWithUs);
  const ended = once(child, 'exit').then(([status, signal]) => {
    process.off('exit', killWithUs);
    const said = readFileSync(server.logFile, 'utf8').trimEnd().split('\n').slice(-3).join(' | ');
    return `${signal ?? `status ${status}`}: ${said}`;
  });
  return { pid: child.pid ?? 0, ready: answers(), ended };
}

function launchCommand(part: 'receiver' | 'worker', env: Record<string, string>, lines: string[]): Life {
  const command = startCommand([part], { env: { ...env, LOG_LEVEL: 'info' } });
  const pattern = part === 'worker' ? /worker: running/ : /receiver: POST/;
  const ready = command.printed(pattern, 300_000);
  const ended = command.ended.then(({ status, signal }) => {
    const said = command.stdout().split('\n').concat(command.stderr().split('\n'));
    lines.push(...said);
    return `${signal ?? `status ${status}`}: ${said.slice(-3).join(' | ')}`;
  });
  return { pid: command.pid, ready, ended };
}

/** A free port of the range that no outgoing connection is given, so that the receiver finds it free again. */
async function steadyPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    if (await isFree(port)) return port;
  }
}

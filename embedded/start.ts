import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Addresses,
  claimFolder,
  holderOf,
  prepareFolder,
  type RunningStack,
  readRunning,
  writeRunning,
} from './folder.ts';
import {
  type EmbeddedPostgres,
  embeddedPostgres,
  postgresAnswers,
  postgresServer,
  preparePostgres,
} from './postgres.ts';
import {
  EmbeddedError,
  endServers,
  homeElsewhere,
  identify,
  launch,
  type ServerCommand,
  type ServerName,
  untilReady,
} from './process.ts';
import {
  type EmbeddedTemporal,
  findTemporal,
  temporalAnswers,
  temporalFile,
  temporalServer,
} from './temporal.ts';

export interface EmbeddedOptions {
  /** The data folder, by convention `.metersync`. It holds everything and survives a restart. */
  dir: string;
  postgres: boolean;
  temporal: boolean;
  /** Whether a Temporal that is started here serves its web page; by default it does not. */
  temporalUi?: boolean;
  /** Refuses a folder that another process uses, instead of attaching to the servers of that process. */
  alone?: boolean;
  /** Receives progress, one line at a time. */
  log?: (message: string) => void;
}

export interface Embedded {
  postgres?: EmbeddedPostgres;
  temporal?: EmbeddedTemporal;
  /** False if another process runs the stack of this folder: the stack then ends with that process. */
  owned: boolean;
  /** Rejects with an EmbeddedError when a server that was started here ends by itself. Otherwise never settles. */
  finished: Promise<void>;
  /** Stops the servers and returns when they are gone; does nothing if another process owns them. */
  stop(): Promise<void>;
}

/**
 * Starts a real Postgres and Temporal with the data of a folder, or attaches to those of another process.
 * They end with the process that started them, even if it is killed.
 * @throws EmbeddedError, whose message says what to do
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  if (!options.postgres && !options.temporal) return { owned: true, finished: never, stop: async () => {} };
  const dir = resolve(options.dir);
  const { log = () => {} } = options;
  prepareFolder(dir);
  for (let waited = false; ; waited = true) {
    if (options.alone) requireUnused(dir);
    const attached = attachEmbedded({ ...options, dir });
    if (attached !== undefined) return attached;
    if (holderOf(dir) === undefined) await endLeftBehind(dir);
    const claim = claimFolder(dir);
    if ('release' in claim) return await startServers({ ...options, dir, log }, claim);
    if (!waited)
      log(`process ${claim.heldBy.pid} is starting or stopping the stack of this folder: waiting for it`);
    await delay(40);
  }
}

const never = new Promise<void>(() => {});

/**
 * Refuses a folder that another process uses, unless that process is about to end.
 * @throws EmbeddedError that names the process
 */
export function requireUnused(dir: string): void {
  const owner = holderOf(dir);
  if (owner === undefined || readRunning(dir)?.state === 'stopping') return;
  throw new EmbeddedError(
    `Process ${owner.pid} already uses the folder ${dir}. End that process, or set METERSYNC_DIR to another folder.`,
  );
}

/**
 * Attaches to the stack of a folder; undefined if none runs. Throws an EmbeddedError if it lacks a server.
 */
function attachEmbedded(
  wanted: Pick<EmbeddedOptions, 'dir' | 'postgres' | 'temporal'>,
): Embedded | undefined {
  const dir = resolve(wanted.dir);
  const running = readRunning(dir);
  const owner = holderOf(dir);
  if (running?.state !== 'running' || owner === undefined) return undefined;
  for (const name of ['postgres', 'temporal'] as const) {
    if (!wanted[name] || running.addresses[name] !== undefined) continue;
    throw new EmbeddedError(
      `The stack of process ${owner.pid} has no ${titles[name]}, because that process is configured to use another server.\n` +
        'Give this command the same settings, or another data folder.',
    );
  }
  return embedded(running.addresses, { owned: false, finished: never, stop: async () => {} });
}

const titles: Readonly<Record<ServerName, string>> = { postgres: 'Postgres', temporal: 'Temporal' };

/** Whether a server ever ran on a data folder. */
export function hasData(dir: string, server: ServerName): boolean {
  return existsSync(server === 'postgres' ? join(dir, 'postgres') : temporalFile(dir));
}

/** Whether another process runs a Temporal in a data folder. */
export function runsTemporal(dir: string): boolean {
  const running = readRunning(dir);
  return running?.state === 'running' && running.addresses.temporal !== undefined && !!holderOf(dir);
}

/** Removes a data folder, after servers that were left there, which nobody would find without it. */
export async function eraseFolder(dir: string): Promise<void> {
  await endLeftBehind(dir);
  for (const folder of [homeElsewhere(dir), dir])
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** Ends servers whose owner was killed, because they still use the data. */
async function endLeftBehind(dir: string): Promise<void> {
  const { servers = {} } = readRunning(dir) ?? {};
  await endServers(servers);
  const { postgres } = servers;
  // After a crash, another program may have the pid that the lock of Postgres names, and Postgres would take
  // that program for a Postgres on this data. In every other case the lock stays, because it also guards
  // against processes that a killed Postgres left running.
  if (postgres === undefined || identify(postgres.pid) === undefined) return;
  const lock = join(dir, 'postgres', 'postmaster.pid');
  if (existsSync(lock) && Number.parseInt(readFileSync(lock, 'utf8'), 10) === postgres.pid) rmSync(lock);
}

type Setup = Pick<EmbeddedOptions, 'dir' | 'postgres' | 'temporal' | 'temporalUi'> & {
  log: (message: string) => void;
};

/** Starts each server as soon as it is prepared. Waits for both before it throws. */
async function startServers(
  setup: Setup,
  claim: { running: RunningStack; release(): void },
): Promise<Embedded> {
  const { dir, log, temporalUi } = setup;
  const { running } = claim;
  let stopped: Promise<void> | undefined;
  const lost = Promise.withResolvers<void>();
  // Commands that end by themselves do not wait for it.
  lost.promise.catch(() => {});
  const stop = () => {
    stopped ??= stopServers(dir, running).finally(claim.release);
    return stopped;
  };
  const start = async (server: ServerCommand, answers: () => Promise<boolean>) => {
    const launched = launch(server);
    if (launched.identity !== undefined) running.servers[server.name] = launched.identity;
    // Written at once, because the next start finds the server by this file.
    writeRunning(dir, running);
    await untilReady(server, launched, answers);
    launched.ended.then((how) => {
      if (stopped === undefined) lost.reject(endedByItself(server, how));
    });
  };
  const binary = setup.temporal ? findTemporal({ log }) : undefined;
  // Chosen after a download, which may take long, because a free port may soon be taken.
  const ports = Promise.resolve(binary).then(() => choosePorts(dir));
  const startPostgres = async () => {
    const prepared = await preparePostgres(dir, log);
    const { server, address } = postgresServer(prepared, (await ports).postgres);
    await start(server, () => postgresAnswers(address));
    running.addresses.postgres = address;
  };
  const startTemporal = async (found: Promise<string>) => {
    const { temporal: port, temporalUi: uiPort } = await ports;
    const ui = temporalUi ? { uiPort } : {};
    const { server, address } = temporalServer({ dir, binary: await found, port, ...ui });
    await start(server, () => temporalAnswers(address));
    running.addresses.temporal = address;
  };
  const starts = [ports, setup.postgres && startPostgres(), binary && startTemporal(binary)];
  try {
    // Waits for all starts, because nothing may go on in the folder once its claim is released.
    await Promise.allSettled(starts);
    await Promise.all(starts);
    running.state = 'running';
    writeRunning(dir, running);
    return embedded(running.addresses, { owned: true, finished: lost.promise, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

const endedByItself = ({ name, logFile }: ServerCommand, how: string): EmbeddedError =>
  new EmbeddedError(
    `The embedded ${titles[name]} ended by itself (${how}), and nothing works without it. Run the same command again.\n` +
      `The end of ${logFile} may say why it ended.`,
  );

async function stopServers(dir: string, running: RunningStack): Promise<void> {
  try {
    writeRunning(dir, { ...running, state: 'stopping' });
  } catch {
    // The disk is full or the folder was deleted; the servers are stopped all the same.
  }
  await endServers(running.servers);
}

function embedded(addresses: Addresses, life: Pick<Embedded, 'owned' | 'finished' | 'stop'>): Embedded {
  const { postgres, temporal } = addresses;
  return {
    ...life,
    ...(postgres && { postgres: embeddedPostgres(postgres) }),
    ...(temporal && { temporal }),
  };
}

/** Below the range of local ports for outgoing connections, none of which can take one of these by chance. */
const lowestPort = 20_000;

const highestPort = 29_999;

/** Ports by purpose. The data folder keeps them, so that addresses stay the same. */
export type Ports = Record<'postgres' | 'temporal' | 'temporalUi', number>;

/** Chooses the ports of a data folder: the previous ports if they are still free, and free ports otherwise. */
export async function choosePorts(dir: string): Promise<Ports> {
  const file = join(dir, 'ports.json');
  const previous = readPorts(file);
  const ports: Partial<Ports> = {};
  for (const purpose of ['postgres', 'temporal', 'temporalUi'] as const) {
    let port = previous[purpose] ?? randomPort();
    while (Object.values(ports).includes(port) || !(await isFree(port))) port = randomPort();
    ports[purpose] = port;
  }
  writeFileSync(file, `${JSON.stringify(ports, null, 2)}\n`, { mode: 0o600 });
  return ports as Ports;
}

/** At random, so that two stacks that start at the same moment choose different ports. */
const randomPort = (): number => lowestPort + Math.floor(Math.random() * (highestPort - lowestPort + 1));

/** Whether a server could listen on this port of the loopback address now. */
export async function isFree(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

function readPorts(file: string): Partial<Ports> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Partial<Ports>;
  } catch {
    return {};
  }
}

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { bounds } from './bounds.ts';
import { cacheHome } from './environment.ts';
import { EmbeddedError } from './failure.ts';
import { prepareFolder } from './folder.ts';
import { startGuarded } from './guard.ts';
import { lockFile, type StartLock, startLockHolder, takeStartLock } from './lock.ts';
import { choosePorts } from './ports.ts';
import { type EmbeddedPostgres, embeddedPostgres } from './postgres.ts';
import { postgresServer, preparePostgres } from './postgres-server.ts';
import { commandLine, isRunning } from './processes.ts';
import { allAnswer, waitUntilReady } from './ready.ts';
import {
  type Addresses,
  type Running,
  readRunning,
  removeRunning,
  runningFile,
  type ServerName,
} from './running.ts';
import { endServers, serversOf, temporalFile } from './servers.ts';
import { type EmbeddedTemporal, refuseAddressLike, temporalServer } from './temporal.ts';
import { findTemporalBinary } from './temporal-binary.ts';
import { temporalFetchers, type WayTo } from './temporal-fetchers.ts';
import { temporalDigest, temporalVersion } from './temporal-release.ts';

export interface EmbeddedOptions {
  /** The data folder, by convention `.metersync`. It holds everything and survives a restart. */
  dir: string;
  /** Whether Postgres is wanted. */
  postgres: boolean;
  /** Whether Temporal is wanted. */
  temporal: boolean;
  /** Whether a Temporal that this starts serves its web page; by default not. */
  temporalUi?: boolean;
  /** Receives progress, one line at a time, and servers that ended by themselves. */
  log?: (message: string) => void;
  /** The path of a Temporal CLI; then no other is searched for. */
  temporalBinary?: string | undefined;
  /**
   * How long to wait for another process that starts or stops the stack of this folder; it may be
   * downloading.
   */
  waitMs?: number;
  /** Whether to attach also to servers that hang: they run and do not answer. */
  hung?: boolean;
  /** The way of its download; directly when not given. */
  wayTo?: WayTo;
  /** Folder for a fetched Temporal CLI; in the user's cache when not given. */
  binDir?: string;
}

/** The running embedded stack. */
export interface Embedded {
  postgres?: EmbeddedPostgres;
  temporal?: EmbeddedTemporal;
  /** False if another process runs the stack of this folder: the stack then ends with that process. */
  owned: boolean;
  /** Stops the servers and returns when they are gone; does nothing if another process owns them. */
  stop(): Promise<void>;
}

type Setup = Required<Pick<EmbeddedOptions, 'dir' | 'postgres' | 'temporal' | 'log' | 'binDir' | 'waitMs'>> &
  Pick<EmbeddedOptions, 'temporalUi' | 'temporalBinary' | 'wayTo' | 'hung'>;

/**
 * Starts a real Postgres and a real Temporal on the data in a folder, or attaches to those that another
 * process runs there. The servers end with the process that started them, even if that is killed.
 * @throws EmbeddedError, whose message says what to do
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  if (!options.postgres && !options.temporal) return { owned: true, stop: async () => {} };
  const dir = resolve(options.dir);
  const binDir = resolve(options.binDir ?? join(cacheHome(), 'metersync', `temporal-${temporalVersion}`));
  const setup: Setup = { log: () => {}, waitMs: bounds.otherStarterMs, ...options, dir, binDir };
  prepareFolder(dir);
  if (setup.temporal) refuseAddressLike(temporalFile(dir));
  const deadline = Date.now() + setup.waitMs;
  for (let waited = false; ; waited = true) {
    const attached = await attachEmbedded(setup);
    if (attached !== undefined) return attached;
    const lock = takeStartLock(dir);
    if ('release' in lock) {
      const started = await startUnder(lock, setup);
      if (started !== undefined) return started;
    }
    if (Date.now() > deadline) throw neverReady(setup);
    if (!waited) setup.log('another process starts or stops the stack of this folder: waiting for it');
    await delay(bounds.pollMs);
  }
}

/**
 * Attaches to the stack that another process runs in a folder; undefined if none does, or it is starting or
 * stopping.
 * @throws EmbeddedError when it lacks a wanted server, or does not answer
 */
export async function attachEmbedded(
  options: Pick<EmbeddedOptions, 'dir' | 'postgres' | 'temporal' | 'hung'>,
): Promise<Embedded | undefined> {
  const dir = resolve(options.dir);
  const deadline = Date.now() + (options.hung ? bounds.answerMs : bounds.attachMs);
  for (;;) {
    const running = readRunning(dir);
    if (running === undefined || running.state !== 'running') return undefined;
    if (startLockHolder(dir) !== undefined || !isRunning(running.owner)) return undefined;
    refuseIfElsewhere(dir, running);
    refuseIfLacking(running, options);
    const ours = areOurs(dir, running);
    const answers = ours && (await allAnswer(running.addresses));
    const over = Date.now() > deadline;
    if (answers || (ours && options.hung && over))
      return embedded(running.addresses, { owned: false, stop: async () => {} }, { hung: !answers });
    if (over) throw notAnswering(dir, running);
    await delay(bounds.pollMs);
  }
}

/** Whether a server ever ran on a data folder. */
export function hasData(dir: string, server: ServerName): boolean {
  const folder = resolve(dir);
  if (!existsSync(folder)) return false;
  return existsSync(server === 'postgres' ? join(folder, 'postgres') : temporalFile(folder));
}

/** Whether another process runs a Temporal in a data folder. */
export function runsTemporal(dir: string): boolean {
  const running = readRunning(resolve(dir));
  return running?.state === 'running' && running.addresses.temporal !== undefined && isRunning(running.owner);
}

/**
 * Finds the pid of the program that runs a stack in a folder; waits for servers to end whose program has
 * ended.
 */
export async function runnerOf(dir: string, waitMs = bounds.otherStarterMs): Promise<number | undefined> {
  const deadline = Date.now() + waitMs;
  for (;;) {
    const running = readRunning(resolve(dir));
    if (running === undefined) return undefined;
    if (isRunning(running.owner)) return running.owner.pid;
    if (!isRunning(running.guardian)) return undefined;
    if (Date.now() > deadline) return running.guardian.pid;
    await delay(bounds.pollMs);
  }
}

/** Starts the stack while the lock is held; undefined when a guardian still has servers there. */
async function startUnder(lock: StartLock, setup: Setup): Promise<Embedded | undefined> {
  try {
    const left = readRunning(setup.dir);
    if (left !== undefined) {
      if (isRunning(left.guardian)) return undefined;
      await endLeftBehind(setup, left);
    }
    return await startServers(setup);
  } finally {
    lock.release();
  }
}

/** Ends servers whose guardian was killed: nobody else would stop them, and they hold the data. */
async function endLeftBehind(setup: Setup, left: Running): Promise<void> {
  const servers = serversOf(setup.dir, left);
  const alive = Object.values(servers);
  if (alive.length > 0) setup.log('stopping the servers of an earlier run that was killed');
  try {
    await endServers(servers);
  } catch (error) {
    const pids = alive.map(({ pid }) => pid).join(' ');
    throw new EmbeddedError(
      `Servers of an earlier run still use ${setup.dir} and cannot be stopped: ${(error as Error).message}\n` +
        `Stop them as the user who started them: kill -INT ${pids}`,
    );
  }
  removeRunning(setup.dir);
}

type StartableServer = ReturnType<typeof postgresServer> | ReturnType<typeof temporalServer>;

/** Starts each server as soon as it is prepared. Waits for both before it throws. */
async function startServers(setup: Setup): Promise<Embedded> {
  const { dir, log } = setup;
  const ended = new Map<string, string>();
  // It loads while the servers are prepared.
  const guarded = startGuarded(dir, ({ name, how, again }) => {
    ended.set(name, how);
    log(`${name} ended by itself (${how})${again ? ' and is started again' : ''}; see ${join(dir, 'logs')}`);
  });
  const start = async ({ server, address }: StartableServer): Promise<Addresses> => {
    const addresses: Addresses = { [server.name]: address };
    guarded.run(server, addresses);
    await waitUntilReady(addresses, [server], ended);
    return addresses;
  };
  const binary = setup.temporal ? findTemporal(setup) : undefined;
  // After a download, which may take long: a free port is soon taken.
  const ports = Promise.resolve(binary).then(() => choosePorts(dir));
  const starts: Promise<Addresses>[] = [];
  if (setup.postgres) {
    starts.push(
      preparePostgres(dir, log).then(async (prepared) =>
        start(postgresServer(prepared, (await ports).postgres)),
      ),
    );
  }
  if (binary !== undefined) {
    starts.push(
      ports.then(async ({ temporal: port, temporalUi: uiPort }) =>
        start(temporalServer({ dir, binary: await binary, port, ...(setup.temporalUi ? { uiPort } : {}) })),
      ),
    );
  }
  try {
    // Nothing may go on in the folder once its lock is released.
    await Promise.allSettled([ports, ...starts]);
    const addresses: Addresses = Object.assign({}, ...(await Promise.all(starts)));
    return embedded(addresses, { owned: true, stop: guarded.stop });
  } catch (error) {
    await guarded.stop();
    throw error;
  }
}

/** Finds a Temporal CLI, or fetches it into `binDir`; returns its path. */
export async function findTemporal({
  binDir,
  temporalBinary,
  wayTo,
  log,
}: Pick<Setup, 'binDir' | 'temporalBinary' | 'wayTo' | 'log'>): Promise<string> {
  return await findTemporalBinary({
    explicit: temporalBinary,
    searchPath: process.env.PATH ?? '',
    cacheDir: binDir,
    digest: temporalDigest,
    fetchers: temporalFetchers(wayTo),
    log,
  });
}

function embedded(
  addresses: Addresses,
  life: Pick<Embedded, 'owned' | 'stop'>,
  state = { hung: false },
): Embedded {
  return {
    ...life,
    ...(addresses.postgres && { postgres: embeddedPostgres(addresses.postgres, state) }),
    ...(addresses.temporal && { temporal: addresses.temporal }),
  };
}

/**
 * Whether the servers at these addresses are those of this folder: any other that answers must get none of
 * our data.
 */
function areOurs(dir: string, running: Running): boolean {
  const own = serversOf(dir, running);
  return Object.keys(running.addresses).every((name) => name in own);
}

/** Refuses a folder that was copied, or moved, while its servers ran: they run on the data of another. */
function refuseIfElsewhere(dir: string, running: Running): void {
  const runs = Object.values(running.servers).some(isRunning);
  if (!runs || Object.keys(serversOf(dir, running)).length > 0) return;
  const { pid } = running.owner;
  throw new EmbeddedError(
    `Process ${pid} (${commandLine(pid)}) runs the stack of a folder that was copied or moved to ${dir}.\n` +
      `If it was copied, delete ${runningFile(dir)}. If it was moved, stop the process: kill ${pid}`,
  );
}

function refuseIfLacking(running: Running, wanted: { postgres: boolean; temporal: boolean }): void {
  for (const [name, title] of [
    ['postgres', 'Postgres'],
    ['temporal', 'Temporal'],
  ] as const) {
    if (!wanted[name] || running.addresses[name] !== undefined) continue;
    throw new EmbeddedError(
      `The stack that process ${running.owner.pid} runs has no ${title}: that process uses one of its own settings.\n` +
        'Give this command the same settings, or another data folder.',
    );
  }
}

function notAnswering(dir: string, { owner }: Running): EmbeddedError {
  return new EmbeddedError(
    `Process ${owner.pid} (${commandLine(owner.pid)}) runs the stack in ${dir}, but it does not answer.\n` +
      `See ${join(dir, 'logs')}. To stop it: kill ${owner.pid}`,
  );
}

function neverReady({ dir, waitMs }: Setup): EmbeddedError {
  const holder = startLockHolder(dir) ?? readRunning(dir)?.guardian;
  const who = holder === undefined ? 'Another process' : `Process ${holder.pid} (${commandLine(holder.pid)})`;
  return new EmbeddedError(
    `${who} has been starting or stopping the stack in ${dir} for ${Math.round(waitMs / 1000)} s.\n` +
      `If it hangs, stop it${holder === undefined ? '' : ` (kill ${holder.pid})`}. ` +
      `If it is none of ours, delete ${lockFile(dir)} and ${runningFile(dir)}`,
  );
}

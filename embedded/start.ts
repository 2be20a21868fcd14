import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { bounds } from './bounds.ts';
import { EmbeddedError } from './failure.ts';
import { prepareFolder } from './folder.ts';
import { startGuarded } from './guard.ts';
import { lockFile, type StartLock, startLockHolder, takeStartLock } from './lock.ts';
import { choosePorts, type Ports } from './ports.ts';
import { type EmbeddedPostgres, embeddedPostgres } from './postgres.ts';
import { preparePostgres } from './postgres-server.ts';
import { commandLine, isRunning, type ProcessIdentity } from './processes.ts';
import { allAnswer, waitUntilReady } from './ready.ts';
import { type Addresses, type Running, readRunning, removeRunning } from './running.ts';
import { endServers } from './servers.ts';
import { type EmbeddedTemporal, temporalServer } from './temporal.ts';
import { findTemporalBinary } from './temporal-binary.ts';
import { temporalFetchers } from './temporal-fetchers.ts';

export interface EmbeddedOptions {
  /** The data folder, `.metersync` by custom. Everything lies below it and survives a restart. */
  dir: string;
  /** Which of the servers are wanted. */
  postgres: boolean;
  temporal: boolean;
  /** Is told of progress, one line at a time, and of a server that ended by itself. */
  log?: (message: string) => void;
  /** The path of a Temporal CLI; then no other is looked for. */
  temporalBinary?: string | undefined;
  /** Where a fetched Temporal CLI is kept, `bin` in the data folder when not given. */
  binDir?: string;
}

/** The default stack while it runs. */
export interface Embedded {
  postgres?: EmbeddedPostgres;
  temporal?: EmbeddedTemporal;
  /** False when another process runs the stack of this folder: then it ends when that one does. */
  owned: boolean;
  /** Stops the servers and returns when they are gone; does nothing when they are another process's. */
  stop(): Promise<void>;
}

type Setup = Required<Pick<EmbeddedOptions, 'dir' | 'postgres' | 'temporal' | 'log' | 'binDir'>> &
  Pick<EmbeddedOptions, 'temporalBinary'>;

/**
 * Starts a real Postgres and a real Temporal on the data in a folder, or attaches to those that another process
 * runs there. The servers end with the process that started them, however that ends.
 * Throws EmbeddedError, whose message says what to do.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  if (!options.postgres && !options.temporal) return { owned: true, stop: async () => {} };
  const dir = resolve(options.dir);
  const setup = { log: () => {}, ...options, dir, binDir: resolve(options.binDir ?? join(dir, 'bin')) };
  prepareFolder(dir);
  const deadline = Date.now() + bounds.otherStarterMs;
  for (let waited = false; ; waited = true) {
    const attached = await attachEmbedded(setup);
    if (attached !== undefined) return attached;
    const lock = takeStartLock(dir);
    if ('release' in lock) {
      const started = await startUnder(lock, setup);
      if (started !== undefined) return started;
    } else if (Date.now() > deadline) {
      throw notStarted(dir, lock.heldBy);
    }
    if (!waited) setup.log('another process starts or stops the stack of this folder: waiting for it');
    await delay(bounds.pollMs);
  }
}

/**
 * The stack that another process runs in a folder, or undefined when none does, or it is about to start or stop.
 * Throws EmbeddedError when it lacks a server that is wanted, or runs and does not answer.
 */
export async function attachEmbedded(
  options: Pick<EmbeddedOptions, 'dir' | 'postgres' | 'temporal'>,
): Promise<Embedded | undefined> {
  const dir = resolve(options.dir);
  const deadline = Date.now() + bounds.attachMs;
  for (;;) {
    const running = readRunning(dir);
    if (running === undefined || running.state !== 'running' || startLockHolder(dir) !== undefined)
      return undefined;
    if (!isRunning(running.guardian) || !isRunning(running.owner)) return undefined;
    refuseIfLacking(running, options);
    if (await allAnswer(running.addresses)) {
      return embedded(running.addresses, { owned: false, stop: async () => {} });
    }
    if (Date.now() > deadline) throw notAnswering(dir, running);
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

/** Servers whose guardian was killed have nobody who would ever stop them, and hold the data. */
async function endLeftBehind(setup: Setup, left: Running): Promise<void> {
  const alive = Object.values(left.servers).filter(isRunning);
  if (alive.length > 0) setup.log('stopping the servers of an earlier run that was killed');
  try {
    await endServers(left.servers);
  } catch (error) {
    const pids = alive.map(({ pid }) => pid).join(' ');
    throw new EmbeddedError(
      `Servers of an earlier run still use ${setup.dir} and cannot be stopped: ${(error as Error).message}\n` +
        `Stop them as the user who started them: kill -INT ${pids}`,
    );
  }
  removeRunning(setup.dir);
}

async function startServers(setup: Setup): Promise<Embedded> {
  const { dir, log } = setup;
  const ports = await choosePorts(dir);
  const [postgres, temporal] = await bothOrFirstError(
    setup.postgres ? preparePostgres({ dir, port: ports.postgres, log }) : undefined,
    setup.temporal ? prepareTemporal(setup, ports) : undefined,
  );
  const addresses: Addresses = {
    ...(postgres && { postgres: postgres.address }),
    ...(temporal && { temporal: temporal.address }),
  };
  const servers = [postgres, temporal].flatMap((prepared) => (prepared ? [prepared.server] : []));
  const guarded = startGuarded({ dir, addresses, servers });
  try {
    await waitUntilReady(addresses, servers, guarded);
  } catch (error) {
    await guarded.stop();
    throw error;
  }
  guarded.onEnded((name, how) => log(`${name} ended by itself (${how}); see ${join(dir, 'logs')}`));
  return embedded(addresses, { owned: true, stop: guarded.stop });
}

async function prepareTemporal(setup: Setup, ports: Ports) {
  const { dir, binDir, temporalBinary, log } = setup;
  const binary = await findTemporalBinary({
    explicit: temporalBinary,
    searchPath: process.env.PATH ?? '',
    cacheDir: binDir,
    fetchers: temporalFetchers(),
    log,
  });
  return temporalServer({ dir, binary, port: ports.temporal, uiPort: ports.temporalUi });
}

/** Waits for both before it throws: nothing may go on in the folder once its lock is released. */
async function bothOrFirstError<A, B>(a: Promise<A> | undefined, b: Promise<B> | undefined) {
  await Promise.allSettled([a, b]);
  return await Promise.all([a, b]);
}

function embedded(addresses: Addresses, life: Pick<Embedded, 'owned' | 'stop'>): Embedded {
  return {
    ...life,
    ...(addresses.postgres && { postgres: embeddedPostgres(addresses.postgres) }),
    ...(addresses.temporal && { temporal: addresses.temporal }),
  };
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

function notAnswering(dir: string, { owner, guardian }: Running): EmbeddedError {
  return new EmbeddedError(
    `Process ${owner.pid} (${commandLine(owner.pid)}) runs the stack in ${dir}, but it does not answer.\n` +
      `See ${join(dir, 'logs')}. To stop it: kill ${guardian.pid}`,
  );
}

function notStarted(dir: string, holder: ProcessIdentity): EmbeddedError {
  return new EmbeddedError(
    `Process ${holder.pid} (${commandLine(holder.pid)}) has been starting the stack in ${dir} ` +
      `for ${bounds.otherStarterMs / 60_000} minutes.\n` +
      `Stop it (kill ${holder.pid}) if it hangs; if it is none of ours, delete ${lockFile(dir)}`,
  );
}

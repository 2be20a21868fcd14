/**
 * The process that owns the servers. Its channel to the process that started it closes when that one ends,
 * even by kill -9; then it stops the servers. It runs in a session of its own, so that Ctrl-C in a terminal
 * reaches only the program, which drains while Postgres and Temporal still answer.
 */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, renameSync, statSync } from 'node:fs';
import { bounds } from './bounds.ts';
import { childEnvironment } from './environment.ts';
import type { GuardianTask, ToGuardian, UnexpectedEnd } from './guard.ts';
import { identify } from './processes.ts';
import { type Running, removeRunning, writeRunning } from './running.ts';
import { endServers, type ServerCommand } from './servers.ts';

// The databases and logs hold customers' data, which is for their owner alone.
process.umask(0o077);

let stopping = false;
let guarded: Running | undefined;
const [dir = ''] = process.argv.slice(2);

process.on('message', (message: ToGuardian) => {
  if (message.kind === 'run') run(message.task);
  else void stop();
});
process.on('disconnect', () => void stop());
process.on('uncaughtException', (error) => {
  // For example on a full disk: the servers must not outlive their guardian.
  process.stderr.write(`${error.stack}\n`);
  void stop();
});
for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM'] as const) process.on(signal, () => void stop());

function run({ owner, address, server }: GuardianTask): void {
  const guardian = identify(process.pid);
  if (stopping || guardian === undefined) return;
  guarded ??= { state: 'running', owner, guardian, servers: {}, addresses: {} };
  Object.assign(guarded.addresses, address);
  startServer(server, guarded);
}

function startServer(server: ServerCommand, running: Running, shortLives = 0): void {
  const startedAt = Date.now();
  const log = openLog(server.logFile);
  const child = spawn(server.command, server.args, {
    cwd: server.cwd,
    env: childEnvironment(server.env),
    stdio: ['ignore', log, log],
    ...server.user,
  });
  closeSync(log);
  child.on('error', ({ message }) => report({ name: server.name, how: message, again: false }));
  child.on('exit', (code, signal) => {
    if (stopping) return;
    const lives = Date.now() - startedAt < bounds.shortLifeMs ? shortLives + 1 : 0;
    const again = lives < bounds.shortLivesMax;
    report({ name: server.name, how: signal ?? `status ${code}`, again });
    if (again) setTimeout(() => stopping || startServer(server, running, lives), bounds.restartPauseMs);
  });
  const identity = child.pid === undefined ? undefined : identify(child.pid);
  if (identity === undefined) return;
  running.servers[server.name] = identity;
  // Written at once: by this file the next start finds a server whose guardian was killed.
  writeRunning(dir, running);
}

async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  if (guarded !== undefined) {
    try {
      writeRunning(dir, { ...guarded, state: 'stopping' });
    } catch {
      // The disk is full or the folder was deleted; the servers are stopped all the same.
    }
    await endServers(guarded.servers);
    removeRunning(dir);
  }
  process.exit(0);
}

function openLog(file: string): number {
  if (existsSync(file) && statSync(file).size > bounds.logBytesMax) renameSync(file, `${file}.old`);
  return openSync(file, 'a', 0o600);
}

function report(message: UnexpectedEnd): void {
  if (process.connected) process.send?.(message);
}

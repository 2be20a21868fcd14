import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { childEnvironment } from './environment.ts';
import { EmbeddedError } from './failure.ts';
import { endProcess, identify, type ProcessIdentity } from './processes.ts';
import type { Running, ServerName } from './running.ts';

export interface ServerCommand {
  name: ServerName;
  command: string;
  args: string[];
  /** Variables in addition to those that every child process gets. */
  env?: Record<string, string>;
  /** The folder to run in; `/` when not given. */
  cwd?: string;
  /** The user to run as; this process's user by default. */
  user?: { uid: number; gid: number };
  /** The file to which its output is appended. */
  logFile: string;
}

/** A server that was started, and how it ended, for example "SIGKILL" or "status 1". */
export interface Launched {
  readonly identity: ProcessIdentity | undefined;
  readonly ended: Promise<string>;
}

/** SIGINT makes Postgres end its clients and write a checkpoint. After SIGQUIT, it replays the WAL. */
const stopSignals = { postgres: ['SIGINT', 'SIGQUIT'], temporal: ['SIGTERM'] } as const;
const readyWithinMs = 60_000;
const logBytesMax = 16 * 1024 * 1024;

/** Starts a server in its own session, out of reach of Ctrl-C. It is stopped when this process ends. */
export function launch(server: ServerCommand): Launched {
  const { command, args, env, cwd = '/', user, logFile } = server;
  if (existsSync(logFile) && statSync(logFile).size > logBytesMax) renameSync(logFile, `${logFile}.old`);
  const log = openSync(logFile, 'a', 0o600);
  // The files of the databases hold customers' data, so only their owner may read them.
  const child = spawn('/bin/sh', ['-c', 'umask 077; exec "$@"', 'sh', command, ...args], {
    detached: true,
    cwd,
    env: childEnvironment(env),
    stdio: ['ignore', log, log],
    ...user,
  });
  closeSync(log);
  child.unref();
  const watcher = endWithUs(child.pid ?? 0, stopSignals[server.name][0]);
  const ended = once(child, 'exit').then(
    ([status, signal]) => signal ?? `status ${status}`,
    (error: Error) => error.message,
  );
  ended.finally(() => watcher.kill('SIGKILL'));
  return { identity: identify(child.pid ?? 0), ended };
}

/** Starts a shell that signals a process when this process has ended, which closes the shell's input. */
function endWithUs(pid: number, signal: string) {
  const script = 'read -r _; kill -s "$1" "$2"';
  const watcher = spawn('/bin/sh', ['-c', script, 'sh', signal.replace('SIG', ''), String(pid)], {
    detached: true,
    cwd: '/',
    env: childEnvironment(),
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.unref();
  (watcher.stdin as Socket).unref();
  return watcher;
}

/** Waits until a new server answers. Throws an EmbeddedError with the end of its log if it does not. */
export async function untilReady(
  server: ServerCommand,
  { ended }: Launched,
  answers: () => Promise<boolean>,
): Promise<void> {
  let how: string | undefined;
  ended.then((text) => {
    how = text;
  });
  for (const deadline = Date.now() + readyWithinMs; ; await delay(20)) {
    const ready = await answers();
    // Checked first, because another server may answer on the port of a server that has ended.
    if (how !== undefined) throw failed(server, `ended at once (${how})`);
    if (ready) return;
    if (Date.now() > deadline) throw failed(server, `did not answer within ${readyWithinMs / 1000} s`);
  }
}

/** Stops the servers at the same time and returns when they have ended. */
export async function endServers(servers: Running['servers']): Promise<void> {
  const names = Object.keys(servers) as ServerName[];
  await Promise.all(names.map((name) => servers[name] && endProcess(servers[name], stopSignals[name])));
}

function failed({ name, command, logFile }: ServerCommand, how: string): EmbeddedError {
  const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-8);
  const end = lines.map((line) => `  ${line}`).join('\n');
  return new EmbeddedError(`The ${name} server (${command}) ${how}. The end of its log, ${logFile}:\n${end}`);
}

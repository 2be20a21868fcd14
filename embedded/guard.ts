import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { extname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { bounds } from './bounds.ts';
import { childEnvironment } from './environment.ts';
import { EmbeddedError } from './failure.ts';
import { identify, type ProcessIdentity } from './processes.ts';
import { type Addresses, readRunning, removeRunning, type ServerName } from './running.ts';
import { endServers, type ServerCommand, serversOf } from './servers.ts';

/** A server and its address, as the guardian runs it for a process. */
export interface GuardianTask {
  owner: ProcessIdentity;
  address: Addresses;
  server: ServerCommand;
}
export type ToGuardian = { kind: 'run'; task: GuardianTask } | { kind: 'stop' };
/** A server, or the guardian itself, that ended without being stopped. */
export interface UnexpectedEnd {
  name: ServerName | 'guardian';
  /** For example "SIGKILL" or "status 1". */
  how: string;
  /** Whether the guardian starts it again. */
  again: boolean;
}

/** Servers under a guardian. */
export interface Guarded {
  /** Starts a server. Returns before it answers. */
  run(server: ServerCommand, address: Addresses): void;
  /** Stops the servers, even if the guardian was killed, and returns when they are gone. */
  stop(): Promise<void>;
}

/** Starts the guardian of a data folder. It runs each server as soon as that is prepared. */
export function startGuarded(dir: string, onEnd: (end: UnexpectedEnd) => void): Guarded {
  const owner = identify(process.pid);
  if (owner === undefined) throw new EmbeddedError('This process cannot find itself in the process list.');
  const guardian = spawnGuardian(dir);
  let stopped: Promise<void> | undefined;
  const report = (end: UnexpectedEnd) => stopped === undefined && onEnd(end);
  guardian.on('message', (end: UnexpectedEnd) => report(end));
  guardian.on('exit', (code, signal) =>
    report({ name: 'guardian', how: signal ?? `status ${code}`, again: false }),
  );
  guardian.on('error', ({ message }) => report({ name: 'guardian', how: message, again: false }));
  // The servers must not keep the program from ending.
  guardian.unref();
  guardian.channel?.unref();
  return {
    run: (server, address) => send(guardian, { kind: 'run', task: { owner, address, server } }),
    stop: () => {
      stopped ??= stopGuarded(guardian, dir);
      return stopped;
    },
  };
}

async function stopGuarded(guardian: ChildProcess, dir: string): Promise<void> {
  if (guardian.pid !== undefined && guardian.exitCode === null && guardian.signalCode === null) {
    guardian.ref();
    const exit = once(guardian, 'exit');
    send(guardian, { kind: 'stop' });
    await Promise.race([exit, delay(bounds.stopMs, undefined, { ref: false })]);
  }
  // Only a guardian that was killed leaves the file.
  const left = readRunning(dir);
  if (left === undefined || left.guardian.pid !== guardian.pid) return;
  await endServers(serversOf(dir, left));
  removeRunning(dir);
}

/** Runs guardian.ts from a checkout, or guardian.js once compiled. */
function spawnGuardian(dir: string): ChildProcess {
  const here = import.meta.url;
  const script = fileURLToPath(new URL(`./guardian${extname(here)}`, here));
  const log = openSync(join(dir, 'logs', 'guardian.log'), 'a', 0o600);
  const guardian = spawn(process.execPath, [script, dir], {
    detached: true,
    env: childEnvironment(),
    stdio: ['ignore', log, log, 'ipc'],
  });
  closeSync(log);
  return guardian;
}

function send(guardian: ChildProcess, message: ToGuardian): void {
  // Errors are ignored: a guardian that is gone is reported by its exit.
  guardian.send(message, () => {});
}

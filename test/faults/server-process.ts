import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import type { ServerCommand } from '../../embedded/process.ts';
import type { Life } from './part.ts';

/** Starts a server that ends with this process. Its end is reported with the last lines of its log. */
export function launchServer(server: Omit<ServerCommand, 'name'>, answers: () => Promise<unknown>): Life {
  const log = openSync(server.logFile, 'a', 0o600);
  const child = spawn(server.command, server.args, {
    cwd: server.cwd ?? '/',
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

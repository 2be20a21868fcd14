import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { bounds } from './bounds.ts';
import { childEnvironment } from './environment.ts';

/** Identifies a process, so that a later one with the same pid is another. */
export interface ProcessIdentity {
  pid: number;
  /** When it started, in the system's own form; empty where the system does not say. */
  started: string;
}

/**
 * Identifies a running process; otherwise undefined. A zombie counts as ended: in a container nobody may reap
 * it.
 */
export function identify(pid: number): ProcessIdentity | undefined {
  if (!signalReaches(pid)) return undefined;
  if (process.platform === 'linux') return identifyOnLinux(pid);
  if (process.platform === 'win32') return { pid, started: '' };
  // Commands in two terminals may have other languages, and a laptop another time zone tomorrow.
  const line = ps(pid, 'stat=,lstart=', { LC_ALL: 'C', TZ: 'UTC' });
  if (line === undefined || line === '' || line.startsWith('Z')) return undefined;
  return { pid, started: line.replace(/^\S+\s+/, '') };
}

/** Whether exactly this process still runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.started === identity.started;
}

/** Reads the command line of a process; empty when it is gone or hidden. */
export function commandLine(pid: number): string {
  if (process.platform === 'win32') return '';
  if (process.platform !== 'linux') return ps(pid, 'command=') ?? '';
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

/**
 * Ends a process: sends each signal in turn, waits its time, and sends SIGKILL at last. Returns when it is
 * gone.
 * @throws the error of `kill` when the process belongs to another user
 */
export async function endProcess(
  identity: ProcessIdentity,
  steps: readonly { signal: NodeJS.Signals; waitMs: number }[],
): Promise<void> {
  for (const { signal, waitMs } of [...steps, { signal: 'SIGKILL' as const, waitMs: bounds.hardStopMs }]) {
    if (!isRunning(identity)) return;
    sendSignal(identity.pid, signal);
    const deadline = Date.now() + waitMs;
    while (Date.now() < deadline && isRunning(identity)) await delay(bounds.pollMs);
  }
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function signalReaches(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * Reads fields 3 (state) and 22 (start) of /proc/PID/stat; field 2, the name, may hold spaces and
 * parentheses.
 */
function identifyOnLinux(pid: number): ProcessIdentity | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    return { pid, started: `${bootOnLinux()}/${fields[19]}` };
  } catch {
    return undefined;
  }
}

/** Identifies the boot, as start times count from it. */
function bootOnLinux(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    // Some sandboxes hide it.
    return '';
  }
}

function ps(pid: number, format: string, env: Readonly<Record<string, string>> = {}): string | undefined {
  const { status, stdout } = spawnSync('ps', ['-ww', '-o', format, '-p', String(pid)], {
    encoding: 'utf8',
    env: childEnvironment(env),
  });
  return status === 0 ? stdout.trim() : undefined;
}

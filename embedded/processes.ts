import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { bounds } from './bounds.ts';

/** A process that can be told from a later one that was given the same pid. */
export interface ProcessIdentity {
  pid: number;
  /** When it started, in whatever form the system tells it; empty where it does not. */
  started: string;
}

/** The identity of a process that runs now, or undefined. A zombie has ended: nobody may ever reap it in a container. */
export function identify(pid: number): ProcessIdentity | undefined {
  if (!signalReaches(pid)) return undefined;
  if (process.platform === 'linux') return identifyOnLinux(pid);
  if (process.platform === 'win32') return { pid, started: '' };
  const line = ps(pid, 'stat=,lstart=');
  if (line === undefined || line === '' || line.startsWith('Z')) return undefined;
  return { pid, started: line.replace(/^\S+\s+/, '') };
}

/** Whether exactly this process still runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.started === identity.started;
}

/** The command line of a process, or an empty string when it is gone or hidden. */
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
 * Ends a process: each signal in turn, waiting its time, and SIGKILL at last. Returns when it is gone.
 * Throws what `kill` throws when the process belongs to somebody else.
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

/** State and start time are fields 3 and 22 of /proc/PID/stat; field 2, the name, may hold spaces and parentheses. */
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

/** Start times count from the boot, so they mean something only together with it. */
function bootOnLinux(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    // Some sandboxes do not show it.
    return '';
  }
}

function ps(pid: number, format: string): string | undefined {
  const { status, stdout } = spawnSync('ps', ['-ww', '-o', format, '-p', String(pid)], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

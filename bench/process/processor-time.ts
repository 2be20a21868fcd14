import { readdirSync, readFileSync } from 'node:fs';
import { readRunning, type ServerName } from '../../embedded/running.ts';
import type { BenchStack } from '../stack.ts';

/** Milliseconds of a tick of /proc: USER_HZ is 100 on every Linux that Node runs on. */
const msOfTick = 10;

/**
 * Returns the processor time of a process and of its children so far, in milliseconds, including children
 * that have ended and were waited for. Postgres has a process for each session.
 * @throws Error on systems without Linux's /proc, or if the process is gone
 */
export function processorMs(pid: number): number {
  const children = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && parentOf(name) === pid);
  const { own, waited } = ticksOf(String(pid));
  const running = children.map((child) => timesOrNone(child)?.own ?? 0);
  return (own + waited + running.reduce((sum, ticks) => sum + ticks, 0)) * msOfTick;
}

/** Returns the pids of the servers that the stack started, without another Temporal that is used instead. */
export function serverPids({ dir }: BenchStack): Partial<Record<ServerName, number>> {
  const servers = Object.entries(readRunning(dir)?.servers ?? {});
  return Object.fromEntries(servers.map(([name, { pid }]) => [name, pid]));
}

/** The fields of /proc/PID/stat after the name, which may contain spaces. The first is the state. */
function fieldsOf(pid: string): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function ticksOf(pid: string): { own: number; waited: number } {
  const [user = 0, system = 0, waitedUser = 0, waitedSystem = 0] = fieldsOf(pid).slice(11, 15).map(Number);
  return { own: user + system, waited: waitedUser + waitedSystem };
}

/** Undefined if the process ended while the list of processes was read. */
function timesOrNone(pid: string): ReturnType<typeof ticksOf> | undefined {
  try {
    return ticksOf(pid);
  } catch {
    return undefined;
  }
}

function parentOf(pid: string): number | undefined {
  try {
    return Number(fieldsOf(pid)[1]);
  } catch {
    return undefined;
  }
}

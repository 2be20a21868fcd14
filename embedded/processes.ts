import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Identifies a process, and distinguishes it from a later process with the same pid. */
export interface ProcessIdentity {
  pid: number;
  /** When it started, in the system's own form. */
  started: string;
}

/** Identifies a running process. A zombie counts as ended: in a container nothing may reap it. */
export function identify(pid: number): ProcessIdentity | undefined {
  if (process.platform === 'linux') return identifyOnLinux(pid);
  // Two terminals may have different languages, and a laptop may be in another time zone tomorrow.
  const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
  const { stdout } = spawnSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8', env });
  const [state = 'Z', ...started] = stdout.trim().split(/\s+/);
  return stdout.trim() === '' || state.startsWith('Z') ? undefined : { pid, started: started.join(' ') };
}

export function isRunning(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.started === identity.started;
}

const waitMs = 20_000;

/** Ends a process by each signal in turn, SIGKILL last. Throws if the process belongs to another user. */
export async function endProcess(
  identity: ProcessIdentity,
  signals: readonly NodeJS.Signals[],
): Promise<void> {
  for (const name of [...signals, 'SIGKILL' as const]) {
    if (!isRunning(identity)) return;
    try {
      process.kill(identity.pid, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    const deadline = Date.now() + waitMs;
    while (Date.now() < deadline && isRunning(identity)) await delay(20);
  }
}

/** Reads fields 3 (state) and 22 (start since the boot) of /proc/PID/stat; field 2 may hold spaces. */
function identifyOnLinux(pid: number): ProcessIdentity | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return { pid, started: `${boot}/${fields[19]}` };
  } catch {
    return undefined;
  }
}

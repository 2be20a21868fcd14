import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { bounds } from './bounds.ts';
import { commandLine, endProcess, isRunning } from './processes.ts';
import type { Running, ServerName } from './running.ts';

/** How to run one server. */
export interface ServerCommand {
  name: ServerName;
  command: string;
  args: string[];
  cwd: string;
  /** Variables beside those that every child process gets. */
  env?: Record<string, string>;
  /** The user to run as; ours when not given. */
  user?: { uid: number; gid: number };
  /** The file to which its output is appended. */
  logFile: string;
}

/**
 * Of Postgres, SIGINT ends clients and writes a checkpoint; SIGQUIT ends at once, and the next start reads
 * the WAL.
 */
const stopSteps: Record<ServerName, readonly { signal: NodeJS.Signals; waitMs: number }[]> = {
  postgres: [
    { signal: 'SIGINT', waitMs: bounds.postgresStopMs },
    { signal: 'SIGQUIT', waitMs: bounds.hardStopMs },
  ],
  temporal: [{ signal: 'SIGTERM', waitMs: bounds.temporalStopMs }],
};

/** Stops the servers side by side and returns when they are gone. */
export async function endServers(servers: Running['servers']): Promise<void> {
  await Promise.all(
    Object.entries(servers).map(([name, identity]) => endProcess(identity, stopSteps[name as ServerName])),
  );
}

/**
 * Finds the servers of `running.json` that run now on the data of this folder, by their command lines. The
 * file itself can name any process: it may have come with the folder, out of an archive.
 */
export function serversOf(dir: string, { servers }: Pick<Running, 'servers'>): Running['servers'] {
  const own = Object.entries(servers).filter(
    ([name, identity]) => isRunning(identity) && runsOnDataOf(dir, name as ServerName, identity.pid),
  );
  return Object.fromEntries(own);
}

function runsOnDataOf(dir: string, name: ServerName, pid: number): boolean {
  const data = {
    postgres: () => ` -D ${realpathSync(join(dir, 'postgres'))} `,
    temporal: () => ` --db-filename ${temporalFile(dir)} `,
  };
  try {
    return commandLine(pid).includes(data[name]());
  } catch {
    // There is no data on which it could run.
    return false;
  }
}

/** Returns the path of Temporal's database, as its command line has it. */
export function temporalFile(dir: string): string {
  return join(realpathSync(dir), 'temporal.db');
}

import { bounds } from './bounds.ts';
import { endProcess } from './processes.ts';
import type { Running, ServerName } from './running.ts';

/** How to run one server. */
export interface ServerCommand {
  name: ServerName;
  command: string;
  args: string[];
  cwd: string;
  /** Added to the environment. */
  env?: Record<string, string>;
  /** Whom to run as, when not as ourselves. */
  user?: { uid: number; gid: number };
  /** Everything that it prints is appended here. */
  logFile: string;
}

/** Postgres: SIGINT disconnects clients and writes a checkpoint; SIGQUIT ends at once, and the next start repairs from the WAL. */
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

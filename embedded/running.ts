import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readOwnFile } from './ownership.ts';
import type { ProcessIdentity } from './processes.ts';

export type ServerName = 'postgres' | 'temporal';

/**
 * The content of `running.json` in the data folder: the stack that runs there. Only the guardian writes it.
 */
export interface Running {
  state: 'running' | 'stopping';
  /** The process that started the stack, and for which it runs. */
  owner: ProcessIdentity;
  guardian: ProcessIdentity;
  /** The servers that were started, each as soon as it has a pid. */
  servers: Partial<Record<ServerName, ProcessIdentity>>;
  addresses: Addresses;
}

/** Addresses of the servers. */
export interface Addresses {
  postgres?: { port: number; user: string; password: string };
  temporal?: { address: string; uiUrl?: string };
}

/** Returns the path of `running.json` in a data folder. */
export function runningFile(dir: string): string {
  return join(dir, 'running.json');
}

/** Reads `running.json` of a data folder; undefined if there is none that this user wrote. */
export function readRunning(dir: string): Running | undefined {
  try {
    return JSON.parse(readOwnFile(runningFile(dir)) ?? '') as Running;
  } catch {
    return undefined;
  }
}

/** Writes `running.json` atomically, readable by its owner alone, as it holds the password of Postgres. */
export function writeRunning(dir: string, running: Running): void {
  const file = runningFile(dir);
  writeFileSync(`${file}.new`, `${JSON.stringify(running, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

export function removeRunning(dir: string): void {
  rmSync(runningFile(dir), { force: true });
}

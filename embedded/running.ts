import { existsSync, linkSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EmbeddedError } from './failure.ts';
import { readOwnFile } from './folder.ts';
import { identify, isRunning, type ProcessIdentity } from './processes.ts';

export type ServerName = 'postgres' | 'temporal';

export interface Addresses {
  postgres?: { port: number; user: string; password: string };
  temporal?: { address: string; uiUrl?: string };
}

/** `running.json` of the data folder: the stack that runs there. Its first version locks the folder. */
export interface Running {
  state: 'starting' | 'running' | 'stopping';
  /** The process that started the stack, and for which it runs. */
  owner: ProcessIdentity | undefined;
  /** The folder, because a copy of the folder also names the servers of the original. */
  dir: string;
  /** The servers that were started, each as soon as it has a pid. */
  servers: Partial<Record<ServerName, ProcessIdentity>>;
  addresses: Addresses;
}

export function runningFile(dir: string): string {
  return join(dir, 'running.json');
}

/** Reads `running.json` of a data folder; undefined if this user wrote none for this folder. */
export function readRunning(dir: string, name = 'running.json'): Running | undefined {
  try {
    const running = JSON.parse(readOwnFile(join(dir, name)) ?? '') as Running;
    return running.dir === realpathSync(dir) ? running : undefined;
  } catch {
    return undefined;
  }
}

/** Writes `running.json` atomically, private to its owner: it holds the password of Postgres. */
export function writeRunning(dir: string, running: Running): void {
  const file = runningFile(dir);
  writeFileSync(`${file}.new`, `${JSON.stringify(running, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/**
 * Claims a data folder for this process, or returns the running process that holds it.
 * @throws EmbeddedError when nothing can be written there, for example on a full disk
 */
export function claimFolder(
  dir: string,
): { running: Running; release(): void } | { heldBy: ProcessIdentity } {
  const file = runningFile(dir);
  const mine = `${file}.${process.pid}`;
  const owner = identify(process.pid);
  const running: Running = { state: 'starting', owner, dir: realpathSync(dir), servers: {}, addresses: {} };
  try {
    writeFileSync(mine, JSON.stringify(running), { mode: 0o600 });
    for (;;) {
      // A link appears together with its content, so nobody can read a claim before it is written.
      if (linkUnlessThere(mine, file)) return { running, release: () => rmSync(file, { force: true }) };
      const heldBy = holderOf(dir);
      if (heldBy !== undefined) return { heldBy };
      // The old claim is moved away, then checked again: another process may just have claimed the folder.
      if (existsSync(file)) renameSync(file, `${mine}.stale`);
      if (holderOf(dir, `running.json.${process.pid}.stale`)) linkUnlessThere(`${mine}.stale`, file);
    }
  } catch (error) {
    throw new EmbeddedError(`The data folder ${dir} cannot be written: ${(error as Error).message}`);
  } finally {
    for (const path of [mine, `${mine}.stale`]) rmSync(path, { force: true });
  }
}

/** Finds the process that holds a folder now, if any. */
export function holderOf(dir: string, name?: string): ProcessIdentity | undefined {
  const owner = readRunning(dir, name)?.owner;
  return owner !== undefined && isRunning(owner) ? owner : undefined;
}

function linkUnlessThere(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { EmbeddedError, identify, isRunning, type ProcessIdentity, type ServerName } from './process.ts';

/**
 * Creates the data folder, writable only for this user. If that is root, Postgres's account may pass through.
 * @throws EmbeddedError that says what to do if the folder belongs to another user, who could then decide
 *   what runs there, or cannot be written
 */
export function prepareFolder(dir: string): void {
  try {
    mkdirSync(join(dir, 'logs'), { recursive: true, mode: 0o700 });
    for (const folder of [dir, join(dir, 'logs')].map((path) => realpathSync(path))) {
      const { mode, uid } = lstatSync(folder);
      if (uid === process.getuid?.() && (mode & 0o022) !== 0) chmodSync(folder, mode & 0o755);
      const problem = whyNotOurs(folder);
      if (problem !== undefined) throw new Error(`${folder} ${problem}`);
      accessSync(folder, constants.W_OK | constants.X_OK);
    }
    if (process.getuid?.() === 0) chmodSync(dir, 0o711);
  } catch (error) {
    throw new EmbeddedError(
      `The data folder ${dir} cannot be written by user ${process.getuid?.()}: ${(error as Error).message}\n` +
        'Run as the user who made it, give it to the current user (`chown -R`), or set METERSYNC_DIR to another folder.',
    );
  }
}

/**
 * Returns why another user may have put this file or folder here. Trusts root, which can do everything
 * anyway. On a system without user ids it always returns undefined.
 */
export function whyNotOurs(path: string): string | undefined {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  const stat = lstatSync(path);
  if (stat.uid !== uid && stat.uid !== 0) return `belongs to user ${stat.uid}`;
  return (stat.mode & 0o022) === 0 ? undefined : 'can be written by other users';
}

/** Reads a file that only this user can read and write; undefined if it is absent or not ours. */
export function readOwnFile(path: string): string | undefined {
  try {
    const stat = lstatSync(path);
    if (!stat.isFile() || whyNotOurs(dirname(path)) !== undefined) return undefined;
    const uid = process.getuid?.();
    if (uid !== undefined && (stat.uid !== uid || (stat.mode & 0o077) !== 0)) return undefined;
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

export interface Addresses {
  postgres?: { port: number; user: string; password: string };
  temporal?: { address: string; uiUrl?: string };
}

/** `running.json` of the data folder: the stack that runs there. Its first version locks the folder. */
export interface RunningStack {
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
export function readRunning(dir: string, name = 'running.json'): RunningStack | undefined {
  try {
    const running = JSON.parse(readOwnFile(join(dir, name)) ?? '') as RunningStack;
    return running.dir === realpathSync(dir) ? running : undefined;
  } catch {
    return undefined;
  }
}

/** Writes `running.json` atomically, private to its owner: it holds the password of Postgres. */
export function writeRunning(dir: string, running: RunningStack): void {
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
): { running: RunningStack; release(): void } | { heldBy: ProcessIdentity } {
  const file = runningFile(dir);
  const mine = `${file}.${process.pid}`;
  const owner = identify(process.pid);
  const running: RunningStack = {
    state: 'starting',
    owner,
    dir: realpathSync(dir),
    servers: {},
    addresses: {},
  };
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

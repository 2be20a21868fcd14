import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EmbeddedError } from './failure.ts';
import { identify, isRunning, type ProcessIdentity } from './processes.ts';

/** A lock that a process holds while it starts the stack, so that two processes do not start two stacks. */
export interface StartLock {
  release(): void;
}

/**
 * Takes the lock of a data folder, also from a process that has ended; if another process holds it, returns
 * that one. Locks of different names are independent.
 * @throws EmbeddedError when nothing can be written there, as on a full disk
 */
export function takeStartLock(dir: string, name?: string): StartLock | { heldBy: ProcessIdentity } {
  const file = lockFile(dir, name);
  const mine = `${file}.${process.pid}`;
  try {
    writeFileSync(mine, JSON.stringify(identify(process.pid)), { mode: 0o600 });
    for (;;) {
      // A link appears together with its content, so nobody can read an unwritten lock.
      if (linkUnlessThere(mine, file)) return { release: () => rmSync(file, { force: true }) };
      const heldBy = startLockHolder(dir, name);
      if (heldBy !== undefined) return { heldBy };
      setAside(file);
    }
  } catch (error) {
    throw new EmbeddedError(`The data folder ${dir} cannot be written: ${(error as Error).message}`);
  } finally {
    rmSync(mine, { force: true });
  }
}

/** Finds the process that holds the lock of a data folder now, if any. */
export function startLockHolder(dir: string, name?: string): ProcessIdentity | undefined {
  const holder = readHolder(lockFile(dir, name));
  return holder !== undefined && isRunning(holder) ? holder : undefined;
}

/** Returns the path of a data folder's lock. */
export function lockFile(dir: string, name = 'starting.lock'): string {
  return join(dir, name);
}

/**
 * Removes a lock whose holder has ended. It checks the moved file again, as another process may just have
 * taken it.
 */
function setAside(file: string): void {
  const aside = `${file}.${process.pid}.stale`;
  try {
    renameSync(file, aside);
  } catch {
    return;
  }
  const holder = readHolder(aside);
  if (holder !== undefined && isRunning(holder)) linkUnlessThere(aside, file);
  rmSync(aside, { force: true });
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

function readHolder(file: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as ProcessIdentity;
  } catch {
    return undefined;
  }
}

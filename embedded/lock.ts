import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { identify, isRunning, type ProcessIdentity } from './processes.ts';

/** Held while one process starts the stack, so that two that begin at once do not start two. */
export interface StartLock {
  release(): void;
}

/**
 * Takes the lock of a data folder, also from a process that has ended; else tells which process holds it. By another name it is
 * held for something else.
 */
export function takeStartLock(dir: string, name?: string): StartLock | { heldBy: ProcessIdentity } {
  const file = lockFile(dir, name);
  const mine = `${file}.${process.pid}`;
  writeFileSync(mine, JSON.stringify(identify(process.pid)));
  try {
    for (;;) {
      // A link appears at once with what the file says, so nobody can read a lock that is not yet written.
      if (linkUnlessThere(mine, file)) return { release: () => rmSync(file, { force: true }) };
      const heldBy = startLockHolder(dir, name);
      if (heldBy !== undefined) return { heldBy };
      setAside(file);
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

/** The process that holds the lock of a data folder now, if one does. */
export function startLockHolder(dir: string, name?: string): ProcessIdentity | undefined {
  const holder = readHolder(lockFile(dir, name));
  return holder !== undefined && isRunning(holder) ? holder : undefined;
}

/** The path of the lock of a data folder. */
export function lockFile(dir: string, name = 'starting.lock'): string {
  return join(dir, name);
}

/** Removes a lock whose holder has ended. What was moved away is looked at again: another may have taken it just now. */
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

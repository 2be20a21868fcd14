import { accessSync, chmodSync, constants, lstatSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EmbeddedError } from './failure.ts';

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

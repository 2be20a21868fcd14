import { lstatSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';

const writableByOthers = 0o022;
const openToOthers = 0o077;

/**
 * Returns why another user of the machine may have put this file or folder here, undefined if none can have.
 * Root is trusted, as it may do everything anyway. On a system without user ids it always returns undefined.
 */
export function whyNotOurs(path: string): string | undefined {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  const stat = lstatSync(path);
  if (stat.uid !== uid && stat.uid !== 0) return `belongs to user ${stat.uid}`;
  // The mode of a link means nothing, and only the link's owner chooses its target.
  if (!stat.isSymbolicLink() && (stat.mode & writableByOthers) !== 0) return 'can be written by other users';
  return undefined;
}

/**
 * Reads a file that only this user can read and write; undefined if it is absent or another user may have put
 * it there.
 */
export function readOwnFile(path: string): string | undefined {
  try {
    const stat = lstatSync(path);
    if (!stat.isFile() || whyNotOurs(dirname(path)) !== undefined) return undefined;
    const uid = process.getuid?.();
    if (uid !== undefined && (stat.uid !== uid || (stat.mode & openToOthers) !== 0)) return undefined;
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

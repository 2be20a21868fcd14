import { lstatSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';

const writableByOthers = 0o022;
const openToOthers = 0o077;

/**
 * Why another user of the machine might have put this file or folder here, or undefined when none can have. Root is
 * trusted, as it may do everything anyway. Where the system has no user ids, nothing is known.
 */
export function whyNotOurs(path: string): string | undefined {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  const stat = lstatSync(path);
  if (stat.uid !== uid && stat.uid !== 0) return `belongs to user ${stat.uid}`;
  // The mode of a link says nothing, and what it leads to is another's to choose only if the link is.
  if (!stat.isSymbolicLink() && (stat.mode & writableByOthers) !== 0) return 'can be written by other users';
  return undefined;
}

/** The text of a file that this user alone wrote and can read; undefined when it is not there, or another may have put it there. */
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

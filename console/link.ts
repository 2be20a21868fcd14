import { randomBytes } from 'node:crypto';
import { lstatSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makePrivateFolder, writePrivateFile, writePrivateFileOnce } from '../app/process/private-file.ts';

/** The link that opens the console in a browser. Without it any user of the machine could act as its operator. */
export interface ConsoleLink {
  readonly key: string;
  /** The file with the link, which only the user who runs the console can read. */
  readonly file: string;
}

/** Reads the link of a data folder's console, or makes it. Restarts keep its key, so that browsers stay signed in. */
export function readLink(file: string): ConsoleLink {
  const kept = keyIn(file);
  if (kept !== undefined) return { key: kept, file };
  const key = randomBytes(24).toString('base64url');
  makePrivateFolder(dirname(file));
  // Another console of the folder may begin at the same moment: the first one decides.
  writePrivateFileOnce(file, `${pathOf(key)}\n`);
  const made = keyIn(file);
  if (made !== undefined) return { key: made, file };
  // What is there is not a link, or somebody else may have written it.
  writePrivateFile(file, `${pathOf(key)}\n`);
  return { key, file };
}

/** Writes the link into its file, with the address at which the console listens now, and returns it. */
export function keepLink({ key, file }: ConsoleLink, url: string): string {
  const link = `${url}${pathOf(key)}`;
  // A restart on a full disk has nothing to write.
  if (readFileSync(file, 'utf8') !== `${link}\n`) writePrivateFile(file, `${link}\n`);
  return link;
}

const pathOf = (key: string): string => `/open/${key}`;

/** Reads the key from a file, if only this user can have read or written it. */
function keyIn(file: string): string | undefined {
  const stat = lstatSync(file, { throwIfNoEntry: false });
  if (!stat?.isFile() || (stat.mode & 0o077) !== 0) return undefined;
  if (process.getuid !== undefined && stat.uid !== process.getuid()) return undefined;
  return /\/open\/([\w-]{32})\n$/.exec(readFileSync(file, 'utf8'))?.[1];
}

import { accessSync, chmodSync, constants, mkdirSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { EmbeddedError } from './failure.ts';
import { whyNotOurs } from './ownership.ts';

/**
 * Makes the data folder if it is absent, and makes it writable for this user alone.
 * @throws EmbeddedError that says what to do when the folder is another user's, who could then decide what
 * runs and ends there, or something in it cannot be written
 */
export function prepareFolder(dir: string): void {
  const logs = join(dir, 'logs');
  try {
    mkdirSync(logs, { recursive: true });
    for (const folder of [dir, logs]) keepToOurselves(realpathSync(folder));
    accessSync(dir, constants.W_OK | constants.X_OK);
    for (const file of [...filesIn(dir), ...filesIn(logs)]) refuseIfUnwritable(file);
  } catch (error) {
    throw new EmbeddedError(
      `The data folder ${dir} cannot be written by ${userName()}: ${(error as Error).message}\n` +
        'Run as the user who made it, give it to this one (`chown -R`), or give another folder.',
    );
  }
}

/**
 * Removes others' right to write the folder, if it is ours.
 * @throws Error when others could have written there
 */
function keepToOurselves(folder: string): void {
  const { mode, uid } = statSync(folder);
  if (uid === process.getuid?.() && (mode & 0o022) !== 0) chmodSync(folder, mode & 0o755);
  const problem = whyNotOurs(folder);
  if (problem !== undefined) throw new Error(`${folder} ${problem}`);
}

/** Lists the files of a folder, without subfolders: that of Postgres may belong to a user of its own. */
function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(folder, entry.name));
}

function refuseIfUnwritable(file: string): void {
  try {
    accessSync(file, constants.W_OK);
  } catch (error) {
    // Another process may just have removed its file.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user id without a name.
    return `user ${process.getuid?.()}`;
  }
}

import { accessSync, constants, mkdirSync, readdirSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { EmbeddedError } from './failure.ts';

/** Makes the data folder when it is not there; throws, and says what to do, when something in it cannot be written. */
export function prepareFolder(dir: string): void {
  const logs = join(dir, 'logs');
  try {
    mkdirSync(logs, { recursive: true });
    accessSync(dir, constants.W_OK | constants.X_OK);
    for (const file of [...filesIn(dir), ...filesIn(logs)]) refuseIfUnwritable(file);
  } catch (error) {
    throw new EmbeddedError(
      `The data folder ${dir} cannot be written by ${userName()}: ${(error as Error).message}\n` +
        'Run as the user who made it, give it to this one (`chown -R`), or give another folder.',
    );
  }
}

/** Without folders: that of Postgres may belong to a user of its own. */
function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(folder, entry.name));
}

function refuseIfUnwritable(file: string): void {
  try {
    accessSync(file, constants.W_OK);
  } catch (error) {
    // Another process may just be done with its file.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a number that has no name.
    return `user ${process.getuid?.()}`;
  }
}

import { accessSync, constants, mkdirSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { EmbeddedError } from './failure.ts';

/** Makes the data folder when it is not there; throws, and says what to do, when it cannot be written. */
export function prepareFolder(dir: string): void {
  try {
    mkdirSync(join(dir, 'logs'), { recursive: true });
    accessSync(dir, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new EmbeddedError(
      `The data folder ${dir} cannot be written by ${userInfo().username}: ${(error as Error).message}\n` +
        'Give another folder, make it writable (`chown -R`), or run as the user who made it.',
    );
  }
}

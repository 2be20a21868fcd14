import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { createPrivateFile, type PrivateFile } from '../app/process/private-file.ts';
import { CommandError } from './errors.ts';

/** Checks the folder of an output file before the work begins; throws a CommandError if it is not there. */
export function requireFolder(path: string): void {
  const folder = dirname(path);
  if (!existsSync(folder)) throw new CommandError(`${path}: the folder ${folder} does not exist`);
}

/** Codes of a full disk, a quota, a limited file size, or a failing device. */
const noRoom = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO'];

/** Writes a private output file, which appears once complete. A failure or a signal removes a part. */
export async function writeOutputFile<T>(
  path: string,
  write: (stream: PrivateFile['stream']) => Promise<T>,
): Promise<T> {
  let file: PrivateFile | undefined;
  const interrupted = (signal: 'SIGINT' | 'SIGTERM') => {
    file?.discard();
    process.exit(128 + constants.signals[signal]);
  };
  // Listens before there is a file: a user who sees it may already interrupt.
  process.on('SIGINT', interrupted);
  process.on('SIGTERM', interrupted);
  try {
    file = createPrivateFile(path);
    const result = await write(file.stream);
    await file.keep();
    return result;
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (!noRoom.includes(code)) throw error;
    throw new CommandError(`${path} could not be written, and the unfinished file was removed: ${message}`);
  } finally {
    process.off('SIGINT', interrupted);
    process.off('SIGTERM', interrupted);
    file?.discard();
  }
}

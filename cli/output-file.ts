import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { createPrivateFile, type PrivateFile } from '../app/private-file.ts';
import { CommandError } from './errors.ts';

/** @throws CommandError when the folder of a file that is to be written is not there: said before the work, not after it */
export function requireFolder(path: string): void {
  const folder = dirname(path);
  if (!existsSync(folder)) throw new CommandError(`${path}: the folder ${folder} is not there`);
}

/** Of a disk that is full, a quota, a file size that is limited, or a device that fails. */
const noRoom = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO'];

/**
 * Writes a file that somebody asked for: for its user alone, and there only once it is whole. What a failure, Ctrl-C
 * or SIGTERM leaves unfinished is removed.
 */
export async function writeOutputFile<T>(
  path: string,
  write: (stream: PrivateFile['stream']) => Promise<T>,
): Promise<T> {
  let file: PrivateFile | undefined;
  const interrupted = (signal: 'SIGINT' | 'SIGTERM') => {
    file?.discard();
    process.exit(128 + constants.signals[signal]);
  };
  // Before there is a file: whoever sees it may already interrupt.
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
    throw new CommandError(`${path} could not be written, and nothing of it is left: ${message}`);
  } finally {
    process.off('SIGINT', interrupted);
    process.off('SIGTERM', interrupted);
    file?.discard();
  }
}

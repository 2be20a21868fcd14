import { constants } from 'node:os';
import { createPrivateFile, type PrivateFile } from '../app/private-file.ts';

/**
 * Writes a file that somebody asked for: for its user alone, and there only once it is whole. What a failure, Ctrl-C
 * or SIGTERM leaves unfinished is removed.
 */
export async function writeOutputFile<T>(
  path: string,
  write: (stream: PrivateFile['stream']) => Promise<T>,
): Promise<T> {
  const file = createPrivateFile(path);
  const interrupted = (signal: 'SIGINT' | 'SIGTERM') => {
    file.discard();
    process.exit(128 + constants.signals[signal]);
  };
  process.on('SIGINT', interrupted);
  process.on('SIGTERM', interrupted);
  try {
    const result = await write(file.stream);
    await file.keep();
    return result;
  } finally {
    process.off('SIGINT', interrupted);
    process.off('SIGTERM', interrupted);
    file.discard();
  }
}

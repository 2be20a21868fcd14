import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  createWriteStream,
  fchmodSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  type WriteStream,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { finished } from 'node:stream/promises';

/**
 * Everything that we write is for its user alone. A name that is there, a link above all, is never opened: what is
 * written begins under a name that nobody can guess, and is moved to its own when it is whole.
 */
const fileMode = 0o600;
const folderMode = 0o700;

/** A file that is being written. It has its name once it is kept. */
export interface PrivateFile {
  readonly stream: WriteStream;
  /** Ends the stream, waits until all is written, and gives the file its name. */
  keep(): Promise<void>;
  /** Removes what was written; after `keep` it does nothing. Safe in a handler of signals. */
  discard(): void;
}

/** @throws Error when `path` is a device, a pipe or a folder, or its folder cannot be written */
export function createPrivateFile(path: string): PrivateFile {
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there !== undefined && !there.isFile() && !there.isSymbolicLink()) {
    throw new Error(`${path} is there and no file: name a file`);
  }
  const unfinished = nameBeside(path);
  const fd = openSync(unfinished, 'wx', fileMode);
  const stream = createWriteStream(unfinished, { fd });
  let kept = false;
  return {
    stream,
    keep: async () => {
      stream.end();
      await finished(stream);
      renameSync(unfinished, path);
      kept = true;
    },
    discard: () => {
      stream.destroy();
      if (!kept) rmSync(unfinished, { force: true });
    },
  };
}

/** Writes a small file whole, over whatever has its name. */
export function writePrivateFile(path: string, text: string): void {
  renameSync(written(path, text), path);
}

/** Writes a small file whole unless there is one of its name; whoever comes first wins, also among processes. */
export function writePrivateFileOnce(path: string, text: string): void {
  const fresh = written(path, text);
  try {
    linkSync(fresh, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(fresh, { force: true });
  }
}

/** Opens a file to add to it, which others can no longer read. @throws Error when its name is a link */
export function openPrivateLog(path: string): number {
  makePrivateFolder(dirname(path));
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
  // Where the system has no such flag it is undefined, which counts as none.
  const fd = openSync(path, O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW, fileMode);
  fchmodSync(fd, fileMode);
  return fd;
}

/** Makes a folder where there is none; one that is there stays as it is. */
export function makePrivateFolder(dir: string): void {
  mkdirSync(dir, { recursive: true, mode: folderMode });
}

function written(path: string, text: string): string {
  const fresh = nameBeside(path);
  const fd = openSync(fresh, 'wx', fileMode);
  try {
    writeFileSync(fd, text);
    fsyncSync(fd);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
  return fresh;
}

const nameBeside = (path: string): string => `${path}.${randomBytes(8).toString('hex')}.unfinished`;

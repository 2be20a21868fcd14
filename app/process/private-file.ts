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

/** Only the user can read the files. They begin under random names, and no existing file is opened. */
const fileMode = 0o600;
const folderMode = 0o700;

/** A file that is being written; `keep` gives it its name. */
export interface PrivateFile {
  readonly stream: WriteStream;
  /** Ends the stream, waits until everything is written, and gives the file its name. */
  keep(): Promise<void>;
  /** Removes what was written; does nothing after `keep`. Safe in a signal handler. */
  discard(): void;
}

/** Begins a private file. Throws an Error for a device, a pipe, or a folder that is not writable. */
export function createPrivateFile(path: string): PrivateFile {
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there !== undefined && !there.isFile() && !there.isSymbolicLink()) {
    throw new Error(`${path} is not a file: name a file`);
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

/** Writes a small file atomically, and replaces a file of the same name. */
export function writePrivateFile(path: string, text: string): void {
  renameSync(written(path, text), path);
}

/** Writes a small file atomically unless it exists; the first writer wins, also among processes. */
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

/** Opens a file for appending and makes it private. @throws Error when its name is a link */
export function openPrivateLog(path: string): number {
  makePrivateFolder(dirname(path));
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
  // A system without the flag has undefined here, which counts as 0.
  const fd = openSync(path, O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW, fileMode);
  fchmodSync(fd, fileMode);
  return fd;
}

/** Makes a private folder; an existing folder keeps its mode. */
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

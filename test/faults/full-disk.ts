import { spawnSync } from 'node:child_process';
import { chmodSync, closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../support/folder.ts';

/** A separate disk that can be filled to the last byte. */
export interface SmallDisk {
  readonly path: string;
  fill(): void;
  free(): void;
  remove(): Promise<void>;
}

/** Mounts a file system in memory, which needs root. */
export async function smallDisk(megabytes: number): Promise<SmallDisk> {
  const folder = await temporaryFolder();
  // The account of Postgres needs access to the folders in this folder.
  chmodSync(folder.path, 0o755);
  const path = join(folder.path, 'disk');
  await mkdir(path);
  run('mount', '-t', 'tmpfs', '-o', `size=${megabytes}m,mode=755`, 'tmpfs', path);
  const filler = join(path, 'filler');
  return {
    path,
    fill: () => fillWith(filler),
    free: () => rmSync(filler, { force: true }),
    remove: async () => {
      run('umount', '--lazy', path);
      await folder.remove();
    },
  };
}

const mebibyte = Buffer.alloc(1024 * 1024);

/** Writes until no block is left. It repeats this, because other writers free some blocks. */
function fillWith(path: string): void {
  const file = openSync(path, 'a');
  try {
    for (;;) {
      const { bavail, bsize } = statfsSync(path);
      if (bavail === 0) return;
      writeSync(file, mebibyte, 0, Math.min(mebibyte.length, bavail * bsize));
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
  }
}

function run(command: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`a disk of its own takes root and ${command}: ${stderr}`);
}

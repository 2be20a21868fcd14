import { accessSync, constants, mkdtempSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';

const memory = '/dev/shm';
const neededBytes = 6 * 1024 ** 3;
const abandonedMs = 24 * 3_600_000;
const ofTests = /^metersync-(?:arrows|bench|embedded|package|test)-/;

/**
 * Returns the folder for the files of tests: in memory if there is room and programs may run there, because
 * hundreds of databases take five times as much processor time on a disk.
 */
export function temporaryRoot(): string {
  return hasRoom() && programsRun() ? memory : tmpdir();
}

/** Removes folders that killed runs left behind a day ago or earlier. */
export async function removeAbandoned(root: string): Promise<void> {
  const names = (await readdir(root)).filter((name) => ofTests.test(name));
  for (const name of names) {
    const stat = statSync(join(root, name), { throwIfNoEntry: false });
    if (stat === undefined || stat.uid !== process.getuid?.()) continue;
    if (stat.mtimeMs < Date.now() - abandonedMs)
      await rm(join(root, name), { recursive: true, force: true, maxRetries: 3 });
  }
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize >= neededBytes && freemem() >= neededBytes;
  } catch {
    return false;
  }
}

/** Whether programs in the folder in memory may be run. Containers often mount it without that right. */
function programsRun(): boolean {
  try {
    const dir = mkdtempSync(join(memory, 'metersync-test-'));
    try {
      const program = join(dir, 'program');
      writeFileSync(program, '', { mode: 0o700 });
      accessSync(program, constants.X_OK);
      return true;
    } finally {
      rmSync(dir, { recursive: true });
    }
  } catch {
    return false;
  }
}

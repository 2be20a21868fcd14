import { execFile } from 'node:child_process';
import { readFile, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../support/folder.ts';

const run = promisify(execFile);
const checkout = resolve(import.meta.dirname, '../..');

/**
 * Unpacks a revision of the repository, with the packages of this checkout if they are the same.
 * @throws Error of git for an unknown revision, and for one before a change of a migration
 */
export async function olderCheckout(revision: string): Promise<{ path: string; remove(): Promise<void> }> {
  const changed = ['--name-only', '--no-renames', '--diff-filter=MD', revision, '--', 'db/migrations/*.sql'];
  const { stdout } = await run('git', ['diff', ...changed], { cwd: checkout });
  if (stdout !== '')
    throw new Error(`${stdout.trim()} changed after ${revision}: name a revision from then on`);
  const folder = await temporaryFolder();
  try {
    const archive = join(folder.path, 'archive.tar');
    await run('git', ['archive', `--output=${archive}`, revision], { cwd: checkout });
    await run('tar', ['--extract', `--file=${archive}`], { cwd: folder.path });
    const lockOf = (path: string) => readFile(join(path, 'package-lock.json'), 'utf8');
    if ((await lockOf(folder.path)) === (await lockOf(checkout)))
      await symlink(join(checkout, 'node_modules'), join(folder.path, 'node_modules'));
    else await run('npm', ['ci'], { cwd: folder.path, maxBuffer: Number.POSITIVE_INFINITY });
    return folder;
  } catch (error) {
    await folder.remove();
    throw error;
  }
}

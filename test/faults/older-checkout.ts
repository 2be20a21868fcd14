import { execFile } from 'node:child_process';
import { readFile, symlink } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../support/folder.ts';

const run = promisify(execFile);
const checkout = resolve(import.meta.dirname, '../..');

/**
 * Unpacks a revision of the repository, with the packages of this checkout if they are the same.
 * @throws Error of git for an unknown revision, and for one with migrations that no release has
 */
export async function olderCheckout(revision: string): Promise<{ path: string; remove(): Promise<void> }> {
  await requireReleased(revision);
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

/** Checks that the migrations of a revision are those of this checkout, or of 0.2.0. */
async function requireReleased(revision: string): Promise<void> {
  const git = async (...args: string[]) => (await run('git', args, { cwd: checkout })).stdout;
  const paths = await git('ls-tree', '--name-only', revision, 'db/migrations/');
  for (const path of paths.split('\n').filter((name) => name.endsWith('.sql'))) {
    const text = await git('show', `${revision}:${path}`);
    const own = [join(checkout, path), join(checkout, 'test/db/migrate/release-0.2', basename(path))];
    const texts = await Promise.all(own.map((file) => readFile(file, 'utf8').catch(() => undefined)));
    if (!texts.includes(text))
      throw new Error(`no release has ${path} of ${revision}: name another revision`);
  }
}

import { cp, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from './folder.ts';

/** Migrations up to the given one, in a folder of their own. */
export async function migrationsUntil(last: string): Promise<string> {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  await cp(resolve(import.meta.dirname, '../../db/migrations'), folder.path, { recursive: true });
  const file = join(folder.path, 'meta/_journal.json');
  const journal = JSON.parse(await readFile(file, 'utf8')) as { entries: { tag: string }[] };
  const count = journal.entries.findIndex(({ tag }) => tag === last) + 1;
  await writeFile(file, JSON.stringify({ ...journal, entries: journal.entries.slice(0, count) }));
  return folder.path;
}

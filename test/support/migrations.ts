import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { migrationsFolder } from '../../db/migrate/known-migrations.ts';

/** Makes a folder with the first `count` migrations, like an earlier version; removes it after the test. */
export function earlierMigrations(count: number): string {
  const { folder, file, journal } = copied();
  writeFileSync(file, JSON.stringify({ ...journal, entries: journal.entries.slice(0, count) }));
  return folder;
}

function copied() {
  const folder = mkdtempSync(join(tmpdir(), 'migrations-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(migrationsFolder, folder, { recursive: true });
  const file = join(folder, 'meta/_journal.json');
  return { folder, file, journal: JSON.parse(readFileSync(file, 'utf8')) };
}

/** Makes a folder with all migrations and more, like a later version; removes it after the test. */
export function laterMigrations(...texts: readonly string[]): string {
  const { folder, file, journal } = copied();
  for (const text of texts) {
    const { idx, when } = journal.entries.at(-1);
    const tag = `${String(idx + 1).padStart(4, '0')}_later`;
    journal.entries.push({ idx: idx + 1, version: '7', when: when + 1, tag, breakpoints: true });
    writeFileSync(join(folder, `${tag}.sql`), text);
  }
  writeFileSync(file, JSON.stringify(journal));
  return folder;
}

import { cp, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { onTestFinished } from 'vitest';
import { connectWarehouse, type Database } from '../../db/connect.ts';
import { createDatabase } from './database.ts';
import { temporaryFolder } from './folder.ts';

/** Migrations up to the given one, in a folder of their own. */
async function migrationsUntil(last: string): Promise<string> {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  await cp(resolve(import.meta.dirname, '../../db/migrations'), folder.path, { recursive: true });
  const file = join(folder.path, 'meta/_journal.json');
  const journal = JSON.parse(await readFile(file, 'utf8')) as { entries: { tag: string }[] };
  const count = journal.entries.findIndex(({ tag }) => tag === last) + 1;
  await writeFile(file, JSON.stringify({ ...journal, entries: journal.entries.slice(0, count) }));
  return folder.path;
}

/** A warehouse as it was when the given migration was the last one. */
export async function warehouseUntil(last: string): Promise<Database> {
  const { url, drop } = await createDatabase('upgrade');
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 2, onError: () => {} });
  onTestFinished(async () => {
    await warehouse.close();
    await drop();
  });
  await migrate(warehouse.db, {
    migrationsFolder: await migrationsUntil(last),
    migrationsSchema: 'metersync_migrations',
    migrationsTable: 'schema_migrations',
  });
  return warehouse.db;
}

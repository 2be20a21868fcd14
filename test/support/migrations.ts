import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { sql } from 'drizzle-orm';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { onTestFinished } from 'vitest';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';
import { migrationsFolder, migrationsSchema } from '../../db/migrate/migrations.ts';
import { createDatabase } from './database.ts';

/** The migrations of 0.2.0, of which 0.1.0 had the first. */
const release02 = resolve(import.meta.dirname, '../db/migrate/release-0.2');

/** Creates a warehouse of 0.2.0, or of a part of its migrations, without its views; drops it after the test. */
export async function warehouseOf02(migrations = 4): Promise<Warehouse & { readonly url: string }> {
  const { url, drop } = await createDatabase('older');
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 2, onError: () => {} });
  onTestFinished(async () => {
    await warehouse.close();
    await drop();
  });
  const { folder, file, journal } = copyOf(release02);
  writeFileSync(file, JSON.stringify({ ...journal, entries: journal.entries.slice(0, migrations) }));
  await migrate(warehouse.db, {
    migrationsFolder: folder,
    migrationsSchema,
    migrationsTable: 'schema_migrations',
  });
  // 0.2.0 dropped them after its migrations, when it made its views.
  if (migrations === 4)
    await warehouse.db.execute(sql`
      drop table metersync.monthly_by_site, metersync.company_months,
        metersync.monthly_usage_by_site, metersync.monthly_usage_by_company,
        metersync.monthly_cost_by_site, metersync.monthly_cost_by_company`);
  await warehouse.db.execute(sql`create table metersync_migrations.floor (floor integer not null)`);
  await warehouse.db.execute(sql`insert into metersync_migrations.floor values (2)`);
  return { ...warehouse, url };
}

/** Makes a folder with all migrations and more, like a later version; removes it after the test. */
export function laterMigrations(...texts: readonly string[]): string {
  const { folder, file, journal } = copyOf(migrationsFolder);
  for (const text of texts) {
    const { idx, when } = journal.entries.at(-1);
    const tag = `${String(idx + 1).padStart(4, '0')}_later`;
    journal.entries.push({ idx: idx + 1, version: '7', when: when + 1, tag, breakpoints: true });
    writeFileSync(join(folder, `${tag}.sql`), text);
  }
  writeFileSync(file, JSON.stringify(journal));
  return folder;
}

function copyOf(migrations: string) {
  const folder = mkdtempSync(join(tmpdir(), 'migrations-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(migrations, folder, { recursive: true });
  const file = join(folder, 'meta/_journal.json');
  return { folder, file, journal: JSON.parse(readFileSync(file, 'utf8')) };
}

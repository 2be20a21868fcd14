import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import type { Database } from './connect.ts';
import { ensureRoles } from './roles.ts';

const migrationsTable = 'schema_migrations';
const lockKey = 0x6d657465;

/** The folder of migrations: beside this file in a checkout, at the package's top when built into dist. */
function migrationsFolder(): string {
  const here = fileURLToPath(new URL('./migrations', import.meta.url));
  return existsSync(here) ? here : fileURLToPath(new URL('../../db/migrations', import.meta.url));
}

/** Brings the warehouse's schema and what its roles may do up to date. Safe to call from several processes at once. */
export async function migrateWarehouse(db: Database): Promise<{ applied: number; rolesMissing: string[] }> {
  const before = await appliedMigrations(db);
  const rolesMissing = await db.transaction(async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(${lockKey})`);
    await migrate(tx as unknown as Database, {
      migrationsFolder: migrationsFolder(),
      migrationsSchema: 'metersync_migrations',
      migrationsTable,
    });
    return await ensureRoles(tx);
  });
  return { applied: (await appliedMigrations(db)) - before, rolesMissing };
}

/** How many migrations the code has that the warehouse lacks; negative when the warehouse is newer than the code. */
export async function missingMigrations(db: Database): Promise<number> {
  const known = readMigrationFiles({ migrationsFolder: migrationsFolder() }).length;
  return known - (await appliedMigrations(db));
}

async function appliedMigrations(db: Database): Promise<number> {
  const table = `metersync_migrations.${migrationsTable}`;
  const found = await db.execute<{ found: boolean }>(sql`select to_regclass(${table}) is not null as found`);
  if (!found.rows[0]?.found) return 0;
  const counted = await db.execute<{ count: number }>(
    sql`select count(*)::int as count from metersync_migrations.schema_migrations`,
  );
  return counted.rows[0]?.count ?? 0;
}

import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import type { Database, Executor } from './connect.ts';
import { type BlockedView, refreshViewsIn } from './fields/refresh-views.ts';
import { packagedFolder } from './packaged-folder.ts';
import { ensureRoles } from './roles.ts';
import { applyViews } from './views.ts';

const migrationsTable = 'schema_migrations';
const lockKey = 0x6d657465;

export const newerSchema = 'the warehouse was migrated by a newer metersync: upgrade this one';

/**
 * Brings schema, views and what the roles may do up to date. Safe to call from several processes at once.
 * @throws Error when the warehouse is newer than the code, whose older views would take the place of its own
 */
export async function migrateWarehouse(
  db: Database,
): Promise<{ applied: number; views: boolean; blocked: readonly BlockedView[]; rolesMissing: string[] }> {
  const before = await appliedMigrations(db);
  await db.transaction(async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(${lockKey})`);
    if ((await missingMigrations(tx)) < 0) throw new Error(newerSchema);
    await migrate(tx as unknown as Database, {
      migrationsFolder: packagedFolder('migrations'),
      migrationsSchema: 'metersync_migrations',
      migrationsTable,
    });
  });
  // The migrator commits the transaction that it is given: the rest takes one of its own.
  const rest = await db.transaction(async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(${lockKey})`);
    const views = await applyViews(tx);
    const { blocked } = await refreshViewsIn(tx);
    return { views, blocked, rolesMissing: await ensureRoles(tx) };
  });
  return { applied: (await appliedMigrations(db)) - before, ...rest };
}

/** How many migrations the code has that the warehouse lacks; negative when the warehouse is newer than the code. */
export async function missingMigrations(db: Executor): Promise<number> {
  const known = readMigrationFiles({ migrationsFolder: packagedFolder('migrations') }).length;
  return known - (await appliedMigrations(db));
}

async function appliedMigrations(db: Executor): Promise<number> {
  const table = `metersync_migrations.${migrationsTable}`;
  const found = await db.execute<{ found: boolean }>(sql`select to_regclass(${table}) is not null as found`);
  if (!found.rows[0]?.found) return 0;
  const counted = await db.execute<{ count: number }>(
    sql`select count(*)::int as count from metersync_migrations.schema_migrations`,
  );
  return counted.rows[0]?.count ?? 0;
}

import { sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { floorOf, knownMigrations, migrationsFolder, type Rewrite } from './known-migrations.ts';
import { readMigratable } from './migrate.ts';

/** What a migration would do. */
export type MigrationPlan = Awaited<ReturnType<typeof planMigration>>;

/**
 * Lists the statements of the migrations that `migrateWarehouse` would run. It takes no lock on a table.
 * What follows the migrations (views, grants, compression) is not part of the plan.
 * @throws Error when this code cannot migrate the warehouse
 */
export async function planMigration(db: Executor, folder: string = migrationsFolder) {
  const versions = await readMigratable(db, folder);
  const known = knownMigrations(folder);
  const missing = known.slice(versions.applied);
  return {
    versions,
    /** The oldest code that may write afterwards. */
    floorAfter: floorOf(known),
    /** Each statement with the number of its migration. */
    statements: missing.flatMap(({ number, statements }) =>
      statements.map((statement) => ({ migration: number, statement })),
    ),
    rewrites: await sizesOf(
      db,
      missing.flatMap(({ rewrites }) => rewrites),
    ),
  };
}

/** Estimates the number of rows of each table that exists. */
async function sizesOf(db: Executor, rewrites: readonly Rewrite[]) {
  const tables = rewrites.map(({ table }) => table);
  const { rows } = await db.execute<{ table: string; rows: number }>(sql`
    select name as table, greatest(reltuples, 0)::float8 as rows
    from unnest(${array(tables, 'text')}) as name
      join pg_class on pg_class.oid = to_regclass(name)`);
  return rewrites.flatMap((rewrite) => {
    const size = rows.find(({ table }) => table === rewrite.table);
    return size === undefined ? [] : [{ ...rewrite, rows: size.rows }];
  });
}

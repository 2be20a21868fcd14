import { sql } from 'drizzle-orm';
import type { SchemaVersions } from '../../contract/schema-versions.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { floorOf, knownMigrations, migrationsFolder } from './known-migrations.ts';
import { readMigratable } from './migrate.ts';

/** A statement that a migration would run. */
export interface PlannedStatement {
  /** Number of its migration. */
  readonly migration: number;
  readonly statement: string;
}

export interface MigrationPlan {
  readonly versions: SchemaVersions;
  /** The oldest code that may write afterwards. */
  readonly floorAfter: number;
  readonly statements: readonly PlannedStatement[];
  readonly rewrites: readonly Rewrite[];
}

/** A table that a migration rewrites, and about how many rows it has. */
export interface Rewrite {
  readonly table: string;
  readonly rows: number;
}

/**
 * Lists the statements of the migrations that `migrateWarehouse` would run. It takes no lock on a table.
 * What follows the migrations (views, grants, compression) is not part of the plan.
 * @throws Error when this code cannot migrate the warehouse
 */
export async function planMigration(
  db: Executor,
  folder: string = migrationsFolder,
): Promise<MigrationPlan> {
  const versions = await readMigratable(db, folder);
  const known = knownMigrations(folder);
  const missing = known.slice(versions.applied);
  return {
    versions,
    floorAfter: floorOf(known),
    statements: missing.flatMap(({ number, statements }) =>
      statements.map((statement) => ({ migration: number, statement })),
    ),
    rewrites: await sizesOf(
      db,
      missing.flatMap(({ rewrites }) => rewrites ?? []),
    ),
  };
}

/** Reads about how many rows the tables have that exist. */
async function sizesOf(db: Executor, tables: readonly string[]): Promise<Rewrite[]> {
  if (tables.length === 0) return [];
  const { rows } = await db.execute<Rewrite & Record<string, unknown>>(sql`
    select name as table, greatest(reltuples, 0)::float8 as rows
    from unnest(${array(tables, 'text')}) as name
      join pg_class on pg_class.oid = to_regclass(name)`);
  return rows;
}

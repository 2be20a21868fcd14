import { newerSchema, type SchemaVersions } from '../../contract/schema-versions.ts';
import type { Executor } from '../connection/connect.ts';
import { floorOf, knownMigrations, migrationsFolder } from './known-migrations.ts';
import { readSchemaVersions } from './migrate.ts';

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
}

/**
 * Lists the statements of the migrations that `migrateWarehouse` would run. It takes no lock on a table.
 * What follows the migrations (views, grants, compression) is not part of the plan.
 * @throws Error when the warehouse is newer than the code
 */
export async function planMigration(
  db: Executor,
  folder: string = migrationsFolder,
): Promise<MigrationPlan> {
  const versions = await readSchemaVersions(db, folder);
  if (versions.applied > versions.known) throw new Error(newerSchema);
  const known = knownMigrations(folder);
  return {
    versions,
    floorAfter: floorOf(known),
    statements: known
      .slice(versions.applied)
      .flatMap(({ number, statements }) =>
        statements.map((statement) => ({ migration: number, statement })),
      ),
  };
}

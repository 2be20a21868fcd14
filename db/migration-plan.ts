import { newerSchema, type SchemaVersions } from '../contract/schema-versions.ts';
import { viewsToApply } from './apply-views.ts';
import type { Executor } from './connect.ts';
import { floorOf, knownMigrations, migrationsFolder } from './known-migrations.ts';
import { readSchemaVersions } from './migrate.ts';
import { otherCompression, setCompression } from './schema/compress-raw.ts';
import { createdTable, type StatementCost, statementCost } from './statement-locks.ts';

/** A statement that a migration would run, and what it costs others. */
export interface PlannedStatement extends StatementCost {
  /** Number of its migration; null for what no migration brings. */
  readonly migration: number | null;
  readonly statement: string;
}

export interface MigrationPlan {
  readonly versions: SchemaVersions;
  /** The oldest code that may write afterwards. */
  readonly floorAfter: number;
  readonly statements: readonly PlannedStatement[];
  /** Views and functions of analytics/ that are made anew. */
  readonly views: readonly string[];
}

/**
 * Says what `migrateWarehouse` would run. It reads the catalogue and takes no lock on a table. Grants
 * and typed views of fields that came since are not part of it.
 * @throws Error when the warehouse is newer than the code
 */
export async function planMigration(
  db: Executor,
  folder: string = migrationsFolder,
): Promise<MigrationPlan> {
  const versions = await readSchemaVersions(db, folder);
  if (versions.applied > versions.known) throw new Error(newerSchema);
  const known = knownMigrations(folder);
  const pending = known
    .slice(versions.applied)
    .flatMap(({ number, statements }) =>
      statements.map((statement) => ({ migration: number, statement })),
    );
  const compressed = (await otherCompression(db)).map((relation) => ({
    migration: null,
    statement: setCompression(relation),
  }));
  return {
    versions,
    floorAfter: floorOf(known),
    statements: withCosts([...pending, ...compressed]),
    views: await viewsToApply(db),
  };
}

/** Adds their costs. Nobody waits for a table that one of the statements before creates. */
function withCosts(
  statements: readonly Pick<PlannedStatement, 'migration' | 'statement'>[],
): PlannedStatement[] {
  const created = new Set<string>();
  const isOld = (relation: string): boolean => !created.has(relation);
  return statements.map((planned) => {
    const table = createdTable(planned.statement);
    if (table !== undefined) created.add(table);
    const { locks, rewrites, scans } = statementCost(planned.statement);
    return {
      ...planned,
      locks: locks?.filter(({ relation }) => isOld(relation)) ?? null,
      rewrites: rewrites.filter(isOld),
      scans: scans.filter(isOld),
    };
  });
}

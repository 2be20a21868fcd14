import { readMigrationFiles } from 'drizzle-orm/migrator';
import { packagedFolder } from './packaged-folder.ts';

/** A table that a migration rewrites, which takes long if the table is large. */
export interface Rewrite {
  readonly table: string;
  /** A cautious estimate, for two cores. */
  readonly rowsPerSecond: number;
}

/** A migration of the schema that this code knows. */
export interface KnownMigration {
  /** Its place, from 1: the number of migrations that code has to know to have it. */
  readonly number: number;
  /** When it was made. The migrator identifies it by this time. */
  readonly madeAt: number;
  readonly statements: readonly string[];
  /** Code that knows fewer migrations than this may not write once it is applied. */
  readonly floor: number;
  readonly rewrites: readonly Rewrite[];
}

export const migrationsFolder = packagedFolder('db/migrations');

/** `-- floor: 3`, a line of a migration. */
const floorLine = /^-- floor: (\d+)\s*$/m;
/** `-- rewrites: history.documents, 5000 rows a second`, a line of a migration. */
const rewritesLines = /^-- rewrites: ([\w.]+)(?:, (\d+) rows a second)?\s*$/gm;
/** The estimate for lines without one. Two idle cores rewrite 25,000 rows of the journal. */
const rowsPerSecond = 15_000;

/**
 * Reads the migrations of a folder in their order. Once a migration without a floor is applied, no
 * older code may write: the author of a migration has to state that older code may go on.
 */
export const knownMigrations = (folder = migrationsFolder): readonly KnownMigration[] =>
  readMigrationFiles({ migrationsFolder: folder }).map(({ sql, folderMillis }, at) => {
    const text = sql.join('\n');
    const [, named] = floorLine.exec(text) ?? [];
    return {
      number: at + 1,
      madeAt: folderMillis,
      statements: sql.map((text) => text.trim()).filter((text) => text !== ''),
      floor: Math.min(named === undefined ? at + 1 : Number(named), at + 1),
      rewrites: [...text.matchAll(rewritesLines)].map(([, table = '', rate]) => ({
        table,
        rowsPerSecond: rate === undefined ? rowsPerSecond : Number(rate),
      })),
    };
  });

/** The oldest code that may write once all of these migrations are applied. */
export const floorOf = (known: readonly KnownMigration[]): number =>
  Math.max(0, ...known.map(({ floor }) => floor));

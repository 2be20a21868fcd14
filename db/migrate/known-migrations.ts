import { readMigrationFiles } from 'drizzle-orm/migrator';
import { packagedFolder } from './packaged-folder.ts';

/** A migration of the schema that this code knows. */
export interface KnownMigration {
  /** Its place, from 1: the number of migrations that code has to know to have it. */
  readonly number: number;
  /** When it was made. The migrator identifies it by this time. */
  readonly madeAt: number;
  readonly statements: readonly string[];
  /** Code that knows fewer migrations than this may not write once it is applied. */
  readonly floor: number;
  /** A table that it rewrites, which takes long if the table is large. */
  readonly rewrites: string | undefined;
}

export const migrationsFolder = packagedFolder('db/migrations');

/** `-- floor: 3`, a line of a migration. */
const floorLine = /^-- floor: (\d+)\s*$/m;
/** `-- rewrites: metersync.journal`, a line of a migration. */
const rewritesLine = /^-- rewrites: (\S+)\s*$/m;

/**
 * Reads the migrations of a folder in their order. Once a migration without a floor is applied, no
 * older code may write: the author of a migration has to state that older code may go on.
 */
export const knownMigrations = (folder = migrationsFolder): readonly KnownMigration[] =>
  readMigrationFiles({ migrationsFolder: folder }).map(({ sql, folderMillis }, at) => {
    const text = sql.join('\n');
    const [, named] = floorLine.exec(text) ?? [];
    const [, rewrites] = rewritesLine.exec(text) ?? [];
    return {
      number: at + 1,
      madeAt: folderMillis,
      statements: sql.map((text) => text.trim()).filter((text) => text !== ''),
      floor: Math.min(named === undefined ? at + 1 : Number(named), at + 1),
      rewrites,
    };
  });

/** The oldest code that may write once all of these migrations are applied. */
export const floorOf = (known: readonly KnownMigration[]): number =>
  Math.max(0, ...known.map(({ floor }) => floor));

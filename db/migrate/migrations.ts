import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type SQL, sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { newerSchema, type SchemaVersions } from '../../contract/schema-versions.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';

/** The schema of the tables in which `migrate` notes what it applied. */
export const migrationsSchema = 'metersync_migrations';
/** The applied migrations. */
export const migrations: SQL = sql`${sql.identifier(migrationsSchema)}.schema_migrations`;
/** The oldest code that may write: one row. */
export const floors: SQL = sql`${sql.identifier(migrationsSchema)}.floor`;

/** Returns a folder of SQL by its path in the checkout; a build has it at the same path. */
export const packagedFolder = (path: string): string =>
  fileURLToPath(new URL(`../../${path}`, import.meta.url));

export const migrationsFolder = packagedFolder('db/migrations');

/** A migration of the schema that this code knows. */
export interface KnownMigration {
  /** Its number, from 1: the number of migrations that code has to know to have it. */
  readonly number: number;
  /** When it was made. The warehouse notes it by this time. */
  readonly madeAt: number;
  readonly hash: string;
  readonly statements: readonly string[];
  /** Code that knows fewer migrations than this may not write once it is applied. */
  readonly floor: number;
  /** Tables that it rewrites, which takes long if a table is large. */
  readonly rewrites: readonly { readonly table: string; readonly rowsPerSecond: number }[];
}

/** When the last migrations of earlier releases were made. */
const [lastOf01, lastOf02] = [1_795_378_443_282, 1_795_816_376_214];
/** The number of migrations that 0.2 had. The baseline that replaces them is the next one. */
const countOf02 = 4;

/**
 * Reads the migrations of a folder in their order, of which the first makes the schema of a new
 * warehouse. Once a migration without a floor is applied, no older code may write: the author of a
 * migration has to state that older code may go on.
 */
export const knownMigrations = (folder = migrationsFolder): readonly KnownMigration[] =>
  readMigrationFiles({ migrationsFolder: folder }).map(({ sql, folderMillis, hash }, at) => {
    const number = countOf02 + at + 1;
    return { number, madeAt: folderMillis, hash, ...described(sql, number) };
  });

/** The oldest code that may write once all of these migrations are applied. */
export const floorOf = (known: readonly KnownMigration[]): number =>
  Math.max(0, ...known.map(({ floor }) => floor));

/** `-- floor: 3`, a line of a migration. */
const floorLine = /^-- floor: (\d+)\s*$/m;
/** `-- rewrites: history.documents, 5000 rows a second`, a line of a migration. */
const rewritesLines = /^-- rewrites: ([\w.]+)(?:, (\d+) rows a second)?\s*$/gm;
/** A cautious estimate for lines without one. Two idle cores rewrite 25,000 rows of the journal. */
const rowsPerSecond = 15_000;

function described(texts: readonly string[], number: number) {
  const text = texts.join('\n');
  const [, named] = floorLine.exec(text) ?? [];
  return {
    statements: texts.map((one) => one.trim()).filter((one) => one !== ''),
    floor: Math.min(named === undefined ? number : Number(named), number),
    rewrites: [...text.matchAll(rewritesLines)].map(([, table = '', rate]) => ({
      table,
      rowsPerSecond: rate === undefined ? rowsPerSecond : Number(rate),
    })),
  };
}

/**
 * Returns what upgrades a warehouse of 0.2 instead of the baseline. It repeats the functions,
 * triggers and comments of the baseline, so that only the differences are written down twice.
 */
function upgradeFrom02(baseline: KnownMigration, folder: string): KnownMigration {
  const text = readFileSync(join(folder, 'upgrade_from_0_2.sql'), 'utf8');
  const upgrade = described(text.split('--> statement-breakpoint'), baseline.number);
  const ofBaseline = (what: RegExp) =>
    baseline.statements.filter((statement) => what.test(statement.replace(/^(--.*\n)+/, '')));
  return {
    ...baseline,
    ...upgrade,
    statements: [
      ...ofBaseline(/^create or replace function /),
      ...upgrade.statements,
      ...ofBaseline(/^create or replace trigger /),
      ...ofBaseline(/^comment on /),
    ],
  };
}

/** Reads how many migrations this code knows, how many the warehouse has, and its floor. */
export async function readSchemaVersions(
  db: Executor,
  folder: string = migrationsFolder,
): Promise<SchemaVersions> {
  const all = knownMigrations(folder);
  const made = await readApplied(db);
  const times = all.map(({ madeAt }) => madeAt);
  const since02 = made.filter((madeAt) => madeAt > lastOf02);
  // Without the baseline it is the warehouse of an earlier version, whatever that version called it.
  const applied = since02.some((madeAt) => madeAt === times[0])
    ? countOf02 + since02.length
    : Math.min(made.length, countOf02);
  const known = countOf02 + all.length;
  if (applied === 0) return { known, applied, floor: applied };
  const floor = await db.execute<{ floor: number }>(sql`select floor from ${floors}`);
  return { known, applied, floor: floor.rows[0]?.floor ?? applied };
}

/** Why a migration refuses a schema that it cannot upgrade. */
const refusals = {
  of01: 'the warehouse is one of metersync 0.1.0, which this version cannot upgrade in one step: upgrade it to 0.2.0 first. Stop all workers, run metersync migrate of version 0.2.0 (the tag v0.2.0) on this warehouse, and then run metersync migrate of this version',
  unreleased:
    'the warehouse was migrated by a metersync that was not released: load a new warehouse, which is an empty database, with metersync migrate and metersync backfill all',
};

/**
 * Lists the migrations that a warehouse lacks.
 * @throws Error if the warehouse is newer than the code, or if its version cannot be upgraded
 */
export async function missingMigrations(
  db: Executor,
  folder: string = migrationsFolder,
): Promise<readonly KnownMigration[]> {
  const known = knownMigrations(folder);
  const [baseline, ...later] = known;
  const made = await readApplied(db);
  if (baseline === undefined || made.length === 0) return known;
  if (!made.includes(baseline.madeAt)) {
    const last = Math.max(...made);
    if (last !== lastOf02) throw new Error(last === lastOf01 ? refusals.of01 : refusals.unreleased);
    return [upgradeFrom02(baseline, folder), ...later];
  }
  const times = known.map(({ madeAt }) => madeAt);
  if (made.some((madeAt) => madeAt > lastOf02 && !times.includes(madeAt)))
    throw new Error(newerSchema);
  return later.filter(({ madeAt }) => !made.includes(madeAt));
}

/** Reads when each migration of the warehouse was made. */
async function readApplied(db: Executor): Promise<number[]> {
  if (!(await hasMigrations(db))) return [];
  const { rows } = await db.execute<{ madeAt: number }>(
    sql`select created_at::float8 as "madeAt" from ${migrations}`,
  );
  return rows.map(({ madeAt }) => madeAt);
}

/** Whether the table of applied migrations exists. */
export async function hasMigrations(db: Executor): Promise<boolean> {
  const { rows } = await db.execute<{ exists: boolean }>(
    sql`select to_regclass(${`${migrationsSchema}.schema_migrations`}) is not null as exists`,
  );
  return rows[0]?.exists ?? false;
}

/** What a migration would do. */
export type MigrationPlan = Awaited<ReturnType<typeof planMigration>>;

/**
 * Lists the statements of the migrations that `migrateWarehouse` would run. It takes no lock on a
 * table. What follows the migrations (views, grants, compression) is not part of the plan.
 * @throws Error when this code cannot migrate the warehouse
 */
export async function planMigration(db: Executor, folder: string = migrationsFolder) {
  const missing = await missingMigrations(db, folder);
  return {
    versions: await readSchemaVersions(db, folder),
    /** The oldest code that may write afterwards. */
    floorAfter: floorOf(knownMigrations(folder)),
    /** Each statement with the number of its migration. */
    statements: missing.flatMap(({ number, statements }) =>
      statements.map((statement) => ({ migration: number, statement })),
    ),
    /** Tables that are rewritten, with their estimated numbers of rows. */
    rewrites: await withSizes(
      db,
      missing.flatMap(({ rewrites }) => rewrites),
    ),
  };
}

async function withSizes(db: Executor, rewrites: KnownMigration['rewrites']) {
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

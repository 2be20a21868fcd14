import { type SQL, sql } from 'drizzle-orm';

/** The table in which Drizzle's migrator notes what it applied, in a schema of its own. */
export const migrationsSchema = 'metersync_migrations';
export const migrationsTable = 'schema_migrations';

/** The oldest code that may write: one row. */
export const floors: SQL = sql`${sql.identifier(migrationsSchema)}.floor`;

export const migrations: SQL = sql`${sql.identifier(migrationsSchema)}.${sql.identifier(migrationsTable)}`;

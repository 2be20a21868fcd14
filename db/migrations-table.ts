import { type SQL, sql } from 'drizzle-orm';

/**
 * Where Drizzle's migrator notes what it applied: it makes the table by itself, in no schema of
 * ours.
 */
export const migrationsSchema = 'metersync_migrations';
export const migrationsTable = 'schema_migrations';

export const migrations: SQL = sql`${sql.identifier(migrationsSchema)}.${sql.identifier(migrationsTable)}`;

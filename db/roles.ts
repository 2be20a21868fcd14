import { sql } from 'drizzle-orm';
import { array } from './arrays.ts';
import type { Executor } from './connect.ts';
import { migrationsSchema } from './migrations-table.ts';
import { metersync } from './schema/metersync.ts';
import { ops } from './schema/ops.ts';
import { history, utility } from './schema/utility.ts';

/**
 * Roles of the warehouse, without a login: users grant them to logins of their own. The migrator is
 * the login that runs `metersync migrate`: it owns everything.
 */
export const roles = {
  /** For the worker and the command: to write rows, and change no table. */
  writer: 'metersync_writer',
  /** For analysts: to read the schemas meant for them. */
  analyst: 'metersync_analyst',
} as const;

const views = ['analytics', 'fields'];
/** The schemas that have tables. */
export const written: readonly string[] = [utility, history, ops, metersync].map(
  ({ schemaName }) => schemaName,
);
const read = [utility.schemaName, ops.schemaName, ...views];

/**
 * Creates the roles if the user may, and grants them what they lack in this database. Otherwise
 * another user runs `create role metersync_writer; create role metersync_analyst`, and the
 * migration is run again.
 * @returns the roles that are missing
 */
export async function ensureRoles(db: Executor): Promise<string[]> {
  const missing: string[] = [];
  for (const role of Object.values(roles)) if (!(await ensureRole(db, role))) missing.push(role);
  const schemas = await db.execute<{ name: string }>(sql`
    select nspname as name
    from pg_namespace
    where nspname = any(${array([...written, ...views], 'text')})`);
  const there = (names: readonly string[]) =>
    names.filter((name) => schemas.rows.some((row) => row.name === name)).join(', ');
  const statements = [
    ...(missing.includes(roles.writer)
      ? []
      : writerGrants(there(written), there([...written, ...views]))),
    ...(missing.includes(roles.analyst) ? [] : analystGrants(there(read))),
  ];
  for (const statement of statements) await db.execute(sql.raw(statement));
  return missing;
}

const writerGrants = (tables: string, schemas: string): string[] => [
  `grant usage on schema ${schemas}, ${migrationsSchema} to ${roles.writer}`,
  `grant select on all tables in schema ${schemas} to ${roles.writer}`,
  `grant insert, update, delete on all tables in schema ${tables} to ${roles.writer}`,
  `grant usage, select on all sequences in schema ${tables} to ${roles.writer}`,
  `grant execute on all functions in schema ${schemas} to ${roles.writer}`,
  `grant select on all tables in schema ${migrationsSchema} to ${roles.writer}`,
];

const analystGrants = (schemas: string): string[] => [
  `grant usage on schema ${schemas} to ${roles.analyst}`,
  `grant select on all tables in schema ${schemas} to ${roles.analyst}`,
];

/**
 * Creates a role if the user may; returns whether it exists. Two migrations may create it at once.
 */
async function ensureRole(db: Executor, role: string): Promise<boolean> {
  const result = await db.execute<{ there: boolean; may: boolean }>(sql`
    select
      exists (select from pg_roles where rolname = ${role}) as there,
      (select rolsuper or rolcreaterole from pg_roles where rolname = current_user) as may`);
  const { there = false, may = false } = result.rows[0] ?? {};
  if (there || !may) return there;
  await db.execute(
    sql.raw(`
      do $$ begin
        create role ${role} nologin;
      exception when duplicate_object or unique_violation then null;
      end $$`),
  );
  return true;
}

import { sql } from 'drizzle-orm';
import { array } from './arrays.ts';
import type { Executor } from './connect.ts';
import { migrationsSchema } from './migrations-table.ts';
import { history } from './schema/history.ts';
import { metersync } from './schema/metersync.ts';
import { ops } from './schema/ops.ts';
import { utility } from './schema/utility.ts';

/**
 * Roles of the warehouse, without a login: the user grants them to users of their own. The migrator
 * is whoever runs `metersync migrate`: it owns everything.
 */
export const roles = {
  /** What the worker and the command need: rows, and no table. */
  writer: 'metersync_writer',
  /** What analysts need: to read what is meant for them. */
  analyst: 'metersync_analyst',
} as const;

const views = ['analytics', 'fields'];
const written = [utility, history, ops, metersync].map(({ schemaName }) => schemaName);
const read = [utility.schemaName, ops.schemaName, ...views];

/**
 * Makes the roles where the user may, and grants them what they need in this database; what they
 * lacked before is granted now. Whoever may not make roles asks somebody who may: `create role
 * metersync_writer; create role metersync_analyst`, then migrates again.
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

/** Whether the role is there in the end. Two migrations at once may make it together. */
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

import { sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { metersync } from '../schema/metersync.ts';
import { ops } from '../schema/ops.ts';
import { history, utility } from '../schema/utility.ts';
import { migrationsSchema } from './migrations.ts';

/** Roles without a login, which users grant to their logins. The login that migrates owns all. */
export const roles = {
  /** For the worker and the command: to write rows, and change no table. */
  writer: 'metersync_writer',
  /** For analysts: to read the schemas meant for them. */
  analyst: 'metersync_analyst',
} as const;

const views = ['analytics', 'fields'];
/** The schemas that have tables. */
const written: readonly string[] = [utility, ops, metersync].map(({ schemaName }) => schemaName);
const read = [utility.schemaName, ops.schemaName, ...views];
const all = [...written, history.schemaName, ...views];

/** What `ensureRoles` could not do. */
export interface Ungranted {
  /** Roles that do not exist. */
  readonly rolesMissing: readonly string[];
  /** Relations in analysts' schemas that analysts cannot read, because other users own them. */
  readonly unreadable: readonly string[];
}

/**
 * Creates the roles if the user may do so. In this database it grants them the privileges that they
 * lack on everything that the user owns. Otherwise another user runs `create role metersync_writer;
 * create role metersync_analyst`, and the migration is run again.
 */
export async function ensureRoles(db: Executor): Promise<Ungranted> {
  const { writer, analyst } = roles;
  const rolesMissing: string[] = [];
  for (const role of Object.values(roles))
    if (!(await ensureRole(db, role))) rolesMissing.push(role);
  const owned = await readOwned(db);
  const grant = async (role: string, privileges: string, on: string): Promise<void> => {
    if (on !== '' && !rolesMissing.includes(role))
      await db.execute(sql.raw(`grant ${privileges} on ${on} to ${role}`));
  };
  const those = (kind: Owned['kind'], schemas: readonly string[], which = owned): string => {
    const names = which.filter((one) => one.kind === kind && schemas.includes(one.schema));
    return names.length === 0 ? '' : `${kind} ${names.map(({ name }) => name).join(', ')}`;
  };
  await grant(writer, 'usage', `schema ${[...all, migrationsSchema].join(', ')}`);
  await grant(writer, 'select', those('table', [...all, migrationsSchema]));
  await grant(writer, 'insert, update, delete', those('table', written));
  await grant(writer, 'usage, select', those('sequence', written));
  await grant(writer, 'execute', those('function', all));
  await grant(analyst, 'usage', `schema ${read.join(', ')}`);
  await grant(analyst, 'select', those('table', read));
  // A view calls functions as its reader, and default privileges may deny them to everybody.
  const reading = owned.filter(({ isVolatile }) => !isVolatile);
  await grant(analyst, 'execute', those('function', all, reading));
  const unreadable = rolesMissing.includes(analyst) ? [] : await readUnreadable(db);
  return { rolesMissing, unreadable };
}

interface Owned extends Record<string, unknown> {
  readonly kind: 'table' | 'sequence' | 'function';
  readonly schema: string;
  readonly name: string;
  readonly isVolatile: boolean;
}

/** Lists what this user owns, because a grant on a whole schema fails for others' objects. */
async function readOwned(db: Executor): Promise<Owned[]> {
  const { rows } = await db.execute<Owned>(sql`
    select
      case c.relkind when 'S' then 'sequence' else 'table' end as kind,
      n.nspname as schema,
      c.oid::regclass::text as name,
      false as "isVolatile"
    from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = any(${array([...all, migrationsSchema], 'text')})
      and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
      and pg_has_role(c.relowner, 'usage')
    union all
    select
      'function',
      n.nspname,
      p.oid::regprocedure::text,
      p.provolatile = 'v'
    from pg_proc p
      join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = any(${array(all, 'text')})
      and p.prokind <> 'p'
      and pg_has_role(p.proowner, 'usage')`);
  return rows;
}

/** Lists the relations in the schemas of analysts that they may not read. */
async function readUnreadable(db: Executor): Promise<string[]> {
  const { rows } = await db.execute<{ name: string }>(sql`
    select c.oid::regclass::text as name
    from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = any(${array(read, 'text')})
      and c.relkind in ('r', 'p', 'v', 'm', 'f')
      and not has_table_privilege(${roles.analyst}, c.oid, 'select')
    order by name`);
  return rows.map(({ name }) => name);
}

/** Creates a role if the user may; returns whether it exists, whoever created it. */
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

import pg from 'pg';

/**
 * Gives a database and everything that the connected superuser owns in it to another role, in one
 * transaction. With `groups` the role may also grant the roles without a login. Postgres's own `reassign
 * owned` refuses its bootstrap superuser.
 */
export async function transferOwnership(
  client: pg.Client,
  database: string,
  to: string,
  groups: boolean,
): Promise<void> {
  const role = pg.escapeIdentifier(to);
  await client.query('begin');
  const { rows } = await client.query<{ what: string }>(ownedObjects);
  for (const { what } of rows) await client.query(`alter ${what} owner to ${role}`);
  await client.query(`alter database ${pg.escapeIdentifier(database)} owner to ${role}`);
  const { rows: made } = await client.query<{ name: string }>(
    "select rolname as name from pg_roles where $1 and not rolcanlogin and rolname !~ '^pg_'",
    [groups],
  );
  for (const { name } of made) {
    await client.query(
      `grant ${pg.escapeIdentifier(name)} to ${role} with admin true, inherit false, set false`,
    );
  }
  await client.query('commit');
}

/**
 * Lists objects as `alter` names them. Indexes and columns' sequences follow their table; extensions stay.
 */
const ownedObjects = `
  with mine as (select oid from pg_roles where rolname = current_user),
  schemas as (
    select oid, nspname as name, nspowner as owner from pg_namespace
    where nspname !~ '^pg_' and nspname <> 'information_schema'
  ),
  part as (select classid, objid from pg_depend where deptype = 'e'),
  of_column as (select objid from pg_depend where classid = 'pg_class'::regclass and deptype in ('a', 'i'))
  select format('schema %I', s.name) as what
  from schemas s where s.owner = (select oid from mine)
    and ('pg_namespace'::regclass, s.oid) not in (table part)
  union all
  select format('%s %I.%I', case c.relkind when 'v' then 'view' when 'm' then 'materialized view'
    when 'S' then 'sequence' when 'f' then 'foreign table' else 'table' end, s.name, c.relname)
  from pg_class c join schemas s on s.oid = c.relnamespace
  where c.relowner = (select oid from mine)
    and (c.relkind in ('r', 'p', 'v', 'm', 'f') or (c.relkind = 'S' and c.oid not in (table of_column)))
    and ('pg_class'::regclass, c.oid) not in (table part)
  union all
  select format('routine %s', p.oid::regprocedure)
  from pg_proc p join schemas s on s.oid = p.pronamespace
  where p.proowner = (select oid from mine) and ('pg_proc'::regclass, p.oid) not in (table part)
  union all
  select format('type %I.%I', s.name, t.typname)
  from pg_type t join schemas s on s.oid = t.typnamespace left join pg_class c on c.oid = t.typrelid
  where t.typowner = (select oid from mine) and (t.typtype in ('e', 'd', 'r') or c.relkind = 'c')
    and ('pg_type'::regclass, t.oid) not in (table part)`;

import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../db/connection/connect.ts';

/** A condition for metersync's schemas, with their partitions and without objects of extensions. */
const ours = (schema: SQL) => sql`${schema} !~ '^pg_' and ${schema} not in ('information_schema', 'public')`;

/**
 * Lists everything in the warehouse's schemas, sorted, one object on each line, as a dump would and in the
 * form that all versions use: NOT NULL as attributes of columns, which version 18 also lists separately, and
 * views without relations before columns, which version 15 also writes where they are obvious.
 */
export async function describeSchema(db: Executor): Promise<string[]> {
  const { rows } = await db.execute<{ line: string }>(sql`
    with relation as (
      select c.oid, c.relkind, c.relacl, c.reloptions, c.relpersistence, format('%I.%I', n.nspname, c.relname) as name
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where ${ours(sql`n.nspname`)}
    ),
    routine as (
      select p.oid, p.proacl, p.oid::regprocedure::text as name
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where ${ours(sql`n.nspname`)}
    )
    select format('relation %s %s %s %s %s', name, relkind, relpersistence, array_to_string(reloptions, ','), pg_get_partkeydef(oid)) as line
    from relation where relkind <> 't'
    union all
    select format('column %s.%I %s %s %s %s %s', r.name, a.attname, format_type(a.atttypid, a.atttypmod),
      a.attnotnull, a.attgenerated, a.attidentity, pg_get_expr(d.adbin, d.adrelid))
    from relation r join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where r.relkind <> 't'
    union all
    select format('constraint %s %s %s', r.name, c.conname, pg_get_constraintdef(c.oid))
    from pg_constraint c join relation r on r.oid = c.conrelid where c.contype <> 'n'
    union all
    select format('index %s', pg_get_indexdef(oid)) from relation where relkind in ('i', 'I')
    union all
    select format('trigger %s', pg_get_triggerdef(t.oid))
    from pg_trigger t join relation r on r.oid = t.tgrelid where not t.tgisinternal
    union all
    select format('statistics %s', pg_get_statisticsobjdef(s.oid))
    from pg_statistic_ext s join pg_namespace n on n.oid = s.stxnamespace where ${ours(sql`n.nspname`)}
    union all
    select format('view %s %s', name, regexp_replace(pg_get_viewdef(oid), '\\m[a-z0-9_]+\\.(?=[a-z"])', '', 'g')) from relation where relkind in ('v', 'm')
    union all
    select format('routine %s %s', name, pg_get_functiondef(p.oid))
    from routine r join pg_proc p using (oid) where p.prokind in ('f', 'p')
    union all
    select format('type %s.%I %s %s', n.nspname, t.typname, t.typtype, (
      select string_agg(e.enumlabel, ',' order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid))
    from pg_type t join pg_namespace n on n.oid = t.typnamespace
    where ${ours(sql`n.nspname`)} and t.typtype in ('d', 'e', 'r')
    union all
    select format('comment %s %s %s', coalesce(r.name, o.name), a.attname, d.description)
    from pg_description d
      left join relation r on d.classoid = 'pg_class'::regclass and r.oid = d.objoid
      left join pg_attribute a on a.attrelid = r.oid and a.attnum = d.objsubid and d.objsubid > 0
      left join routine o on d.classoid = 'pg_proc'::regclass and o.oid = d.objoid
    where coalesce(r.name, o.name) is not null
    union all
    select format('grant %s %s %s', object.name, granted.privilege_type, granted.grantee::regrole)
    from (
      select name, relacl as acl from relation
      union all select name, proacl from routine
      union all select nspname, nspacl from pg_namespace where ${ours(sql`nspname`)}
    ) object, aclexplode(object.acl) granted
    where granted.grantee <> granted.grantor
    order by 1`);
  return rows.map(({ line }) => line);
}

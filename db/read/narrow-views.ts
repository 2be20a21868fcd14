import { sql } from 'drizzle-orm';
import type { Executor } from '../connect.ts';
import type { BlockedView } from '../fields/refresh-views.ts';

/**
 * Reads typed views whose columns are too narrow for their values, and what is built on them now.
 */
export async function readNarrowViews(db: Executor): Promise<BlockedView[]> {
  const { rows } = await db.execute<BlockedView & Record<string, unknown>>(sql`
    with narrow as (
      select
        view_name,
        array_agg(column_name order by column_name) as columns
      from ops.typed_columns
      where is_narrow
      group by view_name
    )
    select
      'fields.' || narrow.view_name as view,
      narrow.columns,
      coalesce(built.by, '{}') as by
    from narrow
      join pg_class c on c.oid = to_regclass(format('fields.%I', narrow.view_name))
      cross join lateral (
        select array_agg(distinct named.type || ' ' || named.identity) as by
        from pg_depend d
          left join pg_rewrite r
            on d.classid = 'pg_rewrite'::regclass
            and r.oid = d.objid
          cross join lateral pg_identify_object(
            case when r.oid is null then d.classid else 'pg_class'::regclass end,
            coalesce(r.ev_class, d.objid),
            0
          ) named
        where (d.refclassid, d.refobjid) in (
            ('pg_class'::regclass, c.oid),
            ('pg_type'::regclass, c.reltype)
          )
          and d.deptype = 'n'
          -- A view's own rule depends on it, too.
          and r.ev_class is distinct from c.oid
      ) built
    order by 1`);
  return rows;
}

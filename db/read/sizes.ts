import { sql } from 'drizzle-orm';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { written } from '../migrate/roles.ts';

/**
 * Reads the bytes of each schema's tables and indexes, as Postgres last counted their pages. It opens only
 * the files that Postgres has never counted.
 */
export async function readSizes(db: Executor): Promise<Readonly<Record<string, number>>> {
  const { rows } = await db.execute<{ schema: string; bytes: number }>(sql`
    select
      schema.nspname as schema,
      sum(
        case
          when c.relpages > 0
            then (c.relpages + coalesce(toast.relpages, 0))::float8
              * current_setting('block_size')::int
          else coalesce(pg_relation_size(c.oid), 0)
        end
      )::float8 as bytes
    from pg_namespace schema
      join pg_class c on c.relnamespace = schema.oid
      left join pg_class toast on toast.oid = c.reltoastrelid
    where schema.nspname = any(${array(written, 'text')})
      and c.relkind in ('r', 'i', 'm')
    group by 1
    order by 1`);
  return Object.fromEntries(rows.map(({ schema, bytes }) => [schema, bytes]));
}

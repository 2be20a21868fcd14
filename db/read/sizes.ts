import { and, sql } from 'drizzle-orm';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { written } from '../migrate/roles.ts';

/**
 * Reads the bytes of each schema's tables and indexes, as Postgres last counted their pages. It opens only
 * the files that Postgres has never counted.
 */
export async function readSizes(db: Executor): Promise<Readonly<Record<string, number>>> {
  const bytes = sql<number>`sum(
    case
      when c.relpages > 0
        then (c.relpages + coalesce(toast.relpages, 0))::float8
          * current_setting('block_size')::int
      else coalesce(pg_relation_size(c.oid), 0)
    end
  )::float8`;
  const rows = await db
    .select({ schema: sql<string>`schema.nspname`, bytes })
    .from(sql`pg_namespace schema`)
    .innerJoin(sql`pg_class c`, sql`c.relnamespace = schema.oid`)
    .leftJoin(sql`pg_class toast`, sql`toast.oid = c.reltoastrelid`)
    .where(and(isAmong(sql`schema.nspname`, written), sql`c.relkind in ('r', 'i', 'm')`))
    .groupBy(sql`1`)
    .orderBy(sql`1`);
  return Object.fromEntries(rows.map(({ schema, bytes }) => [schema, bytes]));
}

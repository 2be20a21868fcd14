import type pg from 'pg';

/** Returns the bytes on disk, with indexes, of the tables whose name with schema begins with the prefix. */
export async function bytesOnDisk(client: pg.Client, prefix: string): Promise<number> {
  const { rows } = await client.query<{ bytes: string }>(
    `select coalesce(sum(pg_total_relation_size(c.oid)), 0) as bytes
    from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and starts_with(n.nspname || '.' || c.relname, $1)`,
    [prefix],
  );
  return Number(rows[0]?.bytes ?? 0);
}

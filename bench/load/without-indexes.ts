import pg from 'pg';
import { withClient } from '../stack.ts';

/** Settings that turn off durability, and checkpoints during a load, and take effect by a reload. */
const settings = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  max_wal_size: '8GB',
  checkpoint_timeout: '1h',
  maintenance_work_mem: '1GB',
} as const;

/**
 * Loads rows without the indexes that are not unique, and creates these afterwards: rows at random ids slow
 * down when indexes outgrow Postgres's memory. Resets all `alter system` settings.
 * @param url of the warehouse, as superuser
 */
export async function loadWithoutIndexes(url: string, load: () => Promise<void>): Promise<void> {
  await withClient(url, async (client) => {
    for (const [name, value] of Object.entries(settings))
      await client.query(`alter system set ${name} = ${pg.escapeLiteral(value)}`);
    await client.query('select pg_reload_conf()');
    const { rows: indexes } = await client.query<{ name: string; definition: string }>(`
      select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
      from pg_index i
      join pg_class c on c.oid = i.indrelid
      where not i.indisunique
        and c.relnamespace::regnamespace::text in ('utility', 'metersync', 'ops')
        and not c.relispartition`);
    for (const { name } of indexes) await client.query(`drop index ${name}`);
    await load();
    for (const { definition } of indexes) await client.query(definition);
    await client.query('alter system reset all');
    await client.query('select pg_reload_conf()');
    await client.query('checkpoint');
  });
}

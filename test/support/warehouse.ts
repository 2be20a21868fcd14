import { sql } from 'drizzle-orm';
import { inject } from 'vitest';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';
import { createDatabase } from './database.ts';
import { atFileEnd } from './file-end.ts';

export type TestWarehouse = Warehouse & { readonly url: string; drop(): Promise<void> };

/** Creates a migrated warehouse in its own database. */
export async function createWarehouse(timeZone = 'UTC'): Promise<TestWarehouse> {
  const { url, drop } = await createDatabase('warehouse', inject('warehouseTemplate'));
  const warehouse = connectWarehouse({ url, timeZone, max: 8, onError: () => {} });
  return {
    ...warehouse,
    url,
    drop: async () => {
      await warehouse.close();
      await drop();
    },
  };
}

/** Empty warehouses that a test of this file gave back. */
const returned: TestWarehouse[] = [];

/**
 * Lends a warehouse to a test until `drop`: one that an earlier test of the file returned, emptied, whose
 * sessions have plans, or a new one, which takes a seventh of a second.
 */
export async function borrowWarehouse(): Promise<TestWarehouse> {
  atFileEnd.add(dropReturned);
  const warehouse = returned.pop() ?? (await createWarehouse());
  return {
    ...warehouse,
    drop: async () => {
      if (await empty(warehouse)) returned.push(warehouse);
      else await warehouse.drop();
    },
  };
}

async function dropReturned(): Promise<void> {
  await Promise.all(returned.splice(0).map((warehouse) => warehouse.drop()));
}

/** Empties the tables that are empty in a new warehouse. Returns false if columns of views were added. */
async function empty({ db, rowsAdded }: Warehouse): Promise<boolean> {
  rowsAdded.clear();
  const { rows } = await db.execute<{ made: boolean }>(sql`
    select exists (
      select from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'fields'::regnamespace and a.attnum > 0
        and a.attname not in ('id', 'company_id', 'api_version', 'first_synced_at', 'synced_at')
    ) as made`);
  if (rows[0]?.made !== false) return false;
  await db.transaction(async (tx) => {
    // Triggers would write notes about the deleted rows.
    await tx.execute(sql`set local session_replication_role = replica`);
    await tx.execute(sql`
      do $$
      declare
        emptied text;
        used boolean;
      begin
        for emptied in
          select oid::regclass::text from pg_class
          where relnamespace::regnamespace::text in ('utility', 'ops', 'metersync')
            and relkind in ('r', 'p') and not relispartition
            and oid::regclass::text <> 'ops.unit_factors'
        loop
          execute format('select exists (select from %s)', emptied) into used;
          if used then
            execute format('delete from %s', emptied);
          end if;
        end loop;
        insert into metersync.company_changes (company_id) values (null);
      end
      $$`);
  });
  return true;
}

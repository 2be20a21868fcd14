import { inject } from 'vitest';
import { connectWarehouse, type Warehouse } from '../../db/connect.ts';
import { createDatabase } from './database.ts';

/** Creates a migrated warehouse in a database of its own. */
export async function createWarehouse(
  timeZone = 'UTC',
): Promise<Warehouse & { url: string; drop(): Promise<void> }> {
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

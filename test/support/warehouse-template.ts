import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { connectWarehouse } from '../../db/connect.ts';
import { migrateWarehouse } from '../../db/migrate.ts';

/** Name of the migrated warehouse that tests copy and never use. */
export const warehouseTemplate = 'warehouse_template';

/** Migrates a warehouse once for the run, which takes a second; the warehouses of tests are copies. */
export default async function makeWarehouseTemplate(project: TestProject): Promise<void> {
  const { postgresUrl } = project.getProvidedContext();
  const client = new pg.Client({ connectionString: postgresUrl });
  await client.connect();
  await client.query(`create database ${warehouseTemplate}`);
  await client.end();
  const url = new URL(postgresUrl);
  url.pathname = `/${warehouseTemplate}`;
  const warehouse = connectWarehouse({ url: url.href, timeZone: 'UTC', max: 1, onError: () => {} });
  await migrateWarehouse(warehouse.db);
  await warehouse.close();
}

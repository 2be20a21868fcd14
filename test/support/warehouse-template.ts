import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { connectWarehouse } from '../../db/connect.ts';
import { migrateWarehouse } from '../../db/migrate.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Name of the migrated warehouse that tests copy and never use. */
    warehouseTemplate: string;
  }
}

const name = 'warehouse_template';

/** Migrates a warehouse once for the run, which takes a second; the warehouses of tests are copies. */
export default async function makeWarehouseTemplate(project: TestProject): Promise<void> {
  const { postgresUrl, warehouseTemplate: made } = project.getProvidedContext();
  if (made !== undefined) return;
  const client = new pg.Client({ connectionString: postgresUrl });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  const url = new URL(postgresUrl);
  url.pathname = `/${name}`;
  const warehouse = connectWarehouse({ url: url.href, timeZone: 'UTC', max: 1, onError: () => {} });
  await migrateWarehouse(warehouse.db);
  await warehouse.close();
  project.vitest.provide('warehouseTemplate', name);
}

import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { connectWarehouse } from '../../db/connection/connect.ts';
import { migrateWarehouse } from '../../db/migrate/migrate.ts';
import { openStores } from '../../sandbox/database.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Name of the migrated warehouse that tests copy and never use. */
    warehouseTemplate: string;
    /** Name of the empty sandbox database that tests copy; undefined if each test migrates its own. */
    sandboxTemplate: string | undefined;
  }
}

/** Migrates a warehouse and a sandbox database once, of which the databases of tests are copies. */
export default async function makeTemplates(project: TestProject): Promise<void> {
  const { postgresUrl, warehouseTemplate: made } = project.getProvidedContext();
  if (made !== undefined) return;
  const client = new pg.Client({ connectionString: postgresUrl });
  await client.connect();
  const create = async (name: string): Promise<string> => {
    await client.query(`create database ${name}`);
    return Object.assign(new URL(postgresUrl), { pathname: `/${name}` }).href;
  };
  const url = await create('warehouse_template');
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 1, onError: () => {} });
  await migrateWarehouse(warehouse.db);
  await warehouse.close();
  const sandbox = await openStores(await create('sandbox_template'), () => {});
  await sandbox.close();
  await client.end();
  project.vitest.provide('warehouseTemplate', 'warehouse_template');
  project.vitest.provide('sandboxTemplate', 'sandbox_template');
}

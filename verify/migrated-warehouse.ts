import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectWarehouse, type Database } from '../db/connection/connect.ts';
import { migrateWarehouse } from '../db/migrate/migrate.ts';
import { startEmbedded } from '../embedded/start.ts';

/** Runs work on a newly migrated warehouse, which is dropped afterwards. */
export async function withMigratedWarehouse<T>(work: (db: Database) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'metersync-verify-'));
  try {
    const stack = await startEmbedded({ dir, postgres: true, temporal: false });
    try {
      const url = (await stack.postgres?.ensureDatabase('warehouse')) ?? '';
      const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 1, onError: () => {} });
      try {
        await migrateWarehouse(warehouse.db);
        return await work(warehouse.db);
      } finally {
        await warehouse.close();
      }
    } finally {
      await stack.stop();
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

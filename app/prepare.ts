import type { Logger } from 'pino';
import { sqlMessage, withoutStatement } from '../db/failures.ts';
import { migrateWarehouse, missingMigrations, newerSchema } from '../db/migrate.ts';
import type { Settings } from './settings.ts';
import { openWarehouse } from './warehouse.ts';

/** Brings the warehouse's schema up to date. */
export async function migrate(
  settings: Settings,
  url: string,
  log: Logger,
): ReturnType<typeof migrateWarehouse> {
  const warehouse = openWarehouse(settings, url, log, 2);
  try {
    return await migrateWarehouse(warehouse.db);
  } catch (error) {
    throw inWords(error, url);
  } finally {
    await warehouse.close();
  }
}

/** @throws Error that says what to do when the warehouse's schema is older or newer than this metersync */
export async function requireSchema(settings: Settings, url: string, log: Logger): Promise<void> {
  const warehouse = openWarehouse(settings, url, log, 1);
  try {
    const missing = await missingMigrations(warehouse.db).catch((error: unknown) => {
      throw inWords(error, url);
    });
    if (missing > 0)
      throw new Error(`the warehouse lacks ${missing} migrations: run metersync migrate first`);
    if (missing < 0) throw new Error(newerSchema);
  } finally {
    await warehouse.close();
  }
}

/** Postgres's own words and where it is, rather than the statement that it did not answer. */
function inWords(error: unknown, url: string): Error {
  const { host, pathname } = new URL(url);
  return new Error(`Postgres at ${host}${pathname} (DATABASE_URL): ${sqlMessage(error)}`, {
    cause: withoutStatement(error),
  });
}

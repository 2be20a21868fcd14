import type { Logger } from 'pino';
import { counted } from '../contract/words.ts';
import type { Warehouse } from '../db/connect.ts';
import { sqlMessage, withoutStatement } from '../db/failures.ts';
import { migrateWarehouse, missingMigrations, newerSchema } from '../db/migrate.ts';
import { readTimeZone } from '../db/read/session.ts';
import type { Settings } from './settings.ts';
import { openWarehouse } from './warehouse.ts';

/** Migrates the warehouse's schema to the newest version. */
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

/**
 * Checks that the warehouse's schema is the one of this metersync, and that its sessions use the service's
 * time zone.
 * @throws Error that says what to do when either is not so
 */
export async function requireSchema(settings: Settings, url: string, log: Logger): Promise<void> {
  const warehouse = openWarehouse(settings, url, log, 1);
  try {
    const missing = await missingMigrations(warehouse.db).catch((error: unknown) => {
      throw inWords(error, url);
    });
    if (missing > 0)
      throw new Error(`the warehouse lacks ${counted(missing, 'migration')}: run metersync migrate first`);
    if (missing < 0) throw new Error(newerSchema);
    await requireZone(warehouse, settings.service.timeZone);
  } finally {
    await warehouse.close();
  }
}

/**
 * Checks the time zone of sessions: a pooler may drop their options, and times without a zone would be read
 * wrongly.
 * @throws Error that says what to do
 */
export async function requireZone({ db }: Pick<Warehouse, 'db'>, timeZone: string): Promise<void> {
  const zone = await readTimeZone(db);
  if (zone.toLowerCase() === timeZone.toLowerCase()) return;
  throw new Error(
    `sessions of DATABASE_URL are in the time zone ${zone}, though ${timeZone} was asked for: what stands between drops the options of a session, so connect to Postgres itself`,
  );
}

/** Describes an error by Postgres's own message and address, instead of the failed statement. */
function inWords(error: unknown, url: string): Error {
  const { host, pathname } = new URL(url);
  return new Error(`Postgres at ${host}${pathname} (DATABASE_URL): ${sqlMessage(error)}`, {
    cause: withoutStatement(error),
  });
}

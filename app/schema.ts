import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { serverWaits } from '../contract/retry-policy.ts';
import { describeFit, fitOf } from '../contract/schema-versions.ts';
import { searchPath, type Warehouse, withTimeout } from '../db/connection/connect.ts';
import { sqlMessage, sqlState, withoutStatement } from '../db/connection/failures.ts';
import { readServer, readSetting } from '../db/connection/session.ts';
import { migrateWarehouse } from '../db/migrate/migrate.ts';
import { type MigrationPlan, planMigration, readSchemaVersions } from '../db/migrate/migrations.ts';
import { askAgain, type ServerWait, waitForServer } from './process/running.ts';
import type { Settings } from './settings/settings.ts';
import { isPassing, openToAsk, openWarehouse, placeOf, WarehouseAway } from './warehouse.ts';

/** Checks that Postgres answers, for a person who waits. @throws WarehouseAway if it does not, also when asked again */
export async function requireAnswer(settings: Settings, url: string, log: Logger): Promise<void> {
  const warehouse = openToAsk(settings, url, log, 1);
  try {
    await askAgain((withinMs) => withTimeout(readServer(warehouse.db), withinMs));
  } catch (error) {
    throw new WarehouseAway(url, error, settings.databaseUrl === undefined);
  } finally {
    await warehouse.close();
  }
}

export const migrate = (settings: Settings, url: string, log: Logger): ReturnType<typeof migrateWarehouse> =>
  withWarehouse(settings, openWarehouse(settings, url, log, 2), url, ({ db }) => migrateWarehouse(db));

/** Lists the statements that a migration of the warehouse would run; it changes nothing. */
export const planOf = (settings: Settings, url: string, log: Logger): Promise<MigrationPlan> =>
  withWarehouse(settings, openWarehouse(settings, url, log, 1), url, ({ db }) => planMigration(db));

async function withWarehouse<T>(
  settings: Settings,
  warehouse: Warehouse,
  url: string,
  work: (warehouse: Warehouse) => Promise<T>,
): Promise<T> {
  try {
    return await work(warehouse);
  } catch (error) {
    throw inWords(error, settings, url);
  } finally {
    await warehouse.close();
  }
}

/**
 * Checks that this metersync may write the schema, and that sessions use the service's time zone. A newer
 * schema that it may still write, another search path or another isolation level only log a warning.
 * @throws WarehouseAway when Postgres does not answer, or refuses
 * @throws Error that says what to do when the schema or the time zone is wrong
 */
export async function requireSchema(settings: Settings, url: string, log: Logger): Promise<void> {
  const warehouse = openWarehouse(settings, url, log, 1);
  try {
    const versions = await readSchemaVersions(warehouse.db).catch((error: unknown) => {
      throw new WarehouseAway(url, error, settings.databaseUrl === undefined);
    });
    const fit = fitOf(versions);
    const { saw, todo } = describeFit(versions);
    if (fit === 'ahead') log.warn(versions, `${saw}. ${todo}`);
    else if (fit !== 'same') throw new Error(`${saw}: ${asClause(todo)}`);
    await requireZone(warehouse, settings.service.timeZone);
    await warnOfDropped(warehouse, log);
  } finally {
    await warehouse.close();
  }
}

/** Checks the zone of sessions, which a pooler may drop. Throws an Error that says what to do. */
export async function requireZone({ db }: Pick<Warehouse, 'db'>, timeZone: string): Promise<void> {
  const zone = await readSetting(db, 'TimeZone');
  if (zone.toLowerCase() === timeZone.toLowerCase()) return;
  throw new Error(
    `sessions of DATABASE_URL use the time zone ${zone} instead of ${timeZone}: a pooler drops their options. Run "alter role … set timezone = '${timeZone}'" for the role of DATABASE_URL and its other settings (see Behind a pooler in docs/running.md), or connect to Postgres itself`,
  );
}

/**
 * Settings that a pooler may drop. Another search path could run functions that somebody made in `public`.
 * With another isolation level, groups that write at the same time fail with 40001.
 */
const settingsOfSessions = {
  search_path: { wanted: searchPath.join(', '), written: searchPath.join(', ') },
  default_transaction_isolation: { wanted: 'read committed', written: "'read committed'" },
} as const;

export async function warnOfDropped({ db }: Pick<Warehouse, 'db'>, log: Pick<Logger, 'warn'>): Promise<void> {
  for (const name of ['search_path', 'default_transaction_isolation'] as const) {
    const { wanted, written } = settingsOfSessions[name];
    const set = (await readSetting(db, name)).replaceAll(/ *, */g, ', ');
    if (set === wanted) continue;
    log.warn(
      { [name]: set },
      `sessions of DATABASE_URL have ${name} ${set} instead of ${wanted}: a pooler drops their options. Run "alter role … set ${name} = ${written}" for the role of DATABASE_URL (see Behind a pooler in docs/running.md)`,
    );
  }
}

/** `Run metersync migrate.` as the end of another sentence. */
const asClause = (sentence: string): string =>
  `${sentence.charAt(0).toLowerCase()}${sentence.slice(1).replace(/\.$/, '')}`;

/** Describes an error by Postgres's own message and address, instead of the failed statement. */
function inWords(error: unknown, settings: Settings, url: string): Error {
  if (sqlState(error) === undefined) return new WarehouseAway(url, error, settings.databaseUrl === undefined);
  return new Error(`${placeOf(url, settings.databaseUrl === undefined)}: ${sqlMessage(error)}`, {
    cause: withoutStatement(error),
  });
}

/**
 * Waits until the warehouse is there with this metersync's schema; logs once that it is away and once that it
 * is there. A refusal, for example of a password, or a missing migration ends the search.
 * @throws Error that says what is refused or missing, if the first attempt finds that
 */
export async function awaitWarehouse(options: {
  readonly settings: Settings;
  readonly url: string;
  readonly log: Logger;
  readonly everyMs?: number;
}): Promise<ServerWait> {
  const { settings, url, log, everyMs = serverWaits.lookEveryMs } = options;
  const stopping = new AbortController();
  const absence = async (): Promise<Error | undefined> => {
    try {
      await requireSchema(settings, url, log);
      return undefined;
    } catch (error) {
      if (isAway(error)) return error as Error;
      throw error;
    }
  };
  const first = await absence();
  let there = first === undefined;
  const search = async (): Promise<void> => {
    if (first === undefined) return;
    log.warn(`${first.message}: waiting for it; meanwhile events are accepted and no work is done`);
    do await wait(everyMs, undefined, { signal: stopping.signal });
    while ((await absence()) !== undefined);
    there = true;
    log.info('the warehouse answers now');
  };
  return waitForServer(search(), stopping, () => there);
}

/** Whether Postgres is only away. All other errors say what to do. */
const isAway = (error: unknown): boolean => error instanceof WarehouseAway && isPassing(error.cause);

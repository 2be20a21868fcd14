import type { Logger } from 'pino';
import { consolePolicy } from '../../contract/retry-policy.ts';
import { connectWarehouse, type Warehouse } from '../../db/connection/connect.ts';
import type { Settings } from '../settings/settings.ts';

/** Opens the warehouse of the settings with at most `max` connections. */
export function openWarehouse(settings: Settings, url: string, log: Logger, max = 4): Warehouse {
  return connectWarehouse({
    url,
    timeZone: settings.service.timeZone,
    max,
    onError: (error) => log.warn({ err: error }, 'a connection to the warehouse was lost'),
  });
}

/** Opens the warehouse for pages: their sessions write nothing, and no statement of them takes long. */
export function openForPages(settings: Settings, url: string, log: Logger): Warehouse {
  return connectWarehouse({
    url,
    timeZone: settings.service.timeZone,
    max: 4,
    session: `-c default_transaction_read_only=on -c statement_timeout=${consolePolicy.statementMs}`,
    onError: (error) => log.warn({ err: error }, 'a connection of the console to the warehouse was lost'),
  });
}

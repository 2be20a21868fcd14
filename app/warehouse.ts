import type { Logger } from 'pino';
import { connectWarehouse, type Warehouse } from '../db/connect.ts';
import type { Settings } from './settings.ts';

/** Opens the warehouse of the settings with at most `max` connections. */
export function openWarehouse(settings: Settings, url: string, log: Logger, max = 4): Warehouse {
  return connectWarehouse({
    url,
    timeZone: settings.service.timeZone,
    max,
    onError: (error) => log.warn({ err: error }, 'a connection to the warehouse was lost'),
  });
}

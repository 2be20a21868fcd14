import type { Logger } from 'pino';
import { consolePolicy, serverWaits } from '../../contract/retry-policy.ts';
import { connectWarehouse, type Warehouse, withTimeout } from '../../db/connection/connect.ts';
import type { Settings } from '../settings/settings.ts';

interface Opening {
  readonly max?: number;
  readonly session?: string;
  readonly connectMs?: number;
}

export const openWarehouse = (settings: Settings, url: string, log: Logger, max = 4): Warehouse =>
  open(settings, url, log, { max });

/**
 * Opens the warehouse for a worker, whose repeated statements get one plan each. By default Postgres may plan
 * each call for its values, and so it planned every upsert again.
 */
export const openToWork = (settings: Settings, url: string, log: Logger, max: number): Warehouse =>
  open(settings, url, log, { max, session: '-c plan_cache_mode=force_generic_plan' });

/** Opens the warehouse for a few statements that ask about its health while a person waits. */
export const openToAsk = (settings: Settings, url: string, log: Logger, max = 4): Warehouse =>
  // A little longer than `withTimeout` waits, whose message is plainer than the driver's.
  endingSoon(
    open(settings, url, log, { max, connectMs: serverWaits.answerAgainMs + serverWaits.closeMs / 2 }),
  );

/** Opens the warehouse for pages: their sessions cannot write, and none of their statements takes long. */
export const openForPages = (settings: Settings, url: string, log: Logger): Warehouse =>
  endingSoon(
    open(settings, url, log, {
      session: `-c default_transaction_read_only=on -c statement_timeout=${consolePolicy.statementMs}`,
    }),
  );

function open(settings: Settings, url: string, log: Logger, { max = 4, ...more }: Opening): Warehouse {
  return connectWarehouse({
    url,
    timeZone: settings.service.timeZone,
    max,
    ...more,
    onError: ({ message }) => log.warn({ error: message }, 'a connection to the warehouse was lost'),
  });
}

/** Closes without waiting long, because a server that hangs closes no connection. */
const endingSoon = (warehouse: Warehouse): Warehouse => ({
  ...warehouse,
  close: () => withTimeout(warehouse.close(), serverWaits.closeMs).catch(() => {}),
});

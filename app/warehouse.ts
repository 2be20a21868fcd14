import type { Logger } from 'pino';
import { consolePolicy, serverWaits } from '../contract/retry-policy.ts';
import { capitalized } from '../contract/words.ts';
import { connectWarehouse, NoAnswer, type Warehouse, withTimeout } from '../db/connection/connect.ts';
import { sqlMessage, sqlState, withoutStatement } from '../db/connection/failures.ts';
import type { Away } from '../health/measured.ts';
import type { Settings } from './settings/settings.ts';

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

/** Classes of SQLSTATE of a server that cannot be used now, but may be soon. */
const passing = ['08', '53', '55', '57', '58'];

/** Whether nothing answers, or the server is starting, ending or full, so that another try may succeed. */
export function isPassing(error: unknown): boolean {
  const state = sqlState(error);
  return state === undefined || passing.includes(state.slice(0, 2));
}

/** `embedded`: the settings name no Postgres, so the embedded one is used. */
export function placeOf(url: string, embedded = false): string {
  const { host, pathname } = new URL(url);
  return embedded
    ? `The embedded Postgres at ${host}${pathname}`
    : `Postgres at ${host}${pathname} (DATABASE_URL)`;
}

/** SQLSTATE of a statement that took longer than its time-out. */
const canceled = '57014';

/**
 * Says that Postgres cannot be used, in the same words for every command, page and alarm. `answered` is whether
 * it has just answered something else: then it is slow.
 */
export function outageOf(
  url: string,
  error: unknown,
  { embedded = false, answered = false }: { embedded?: boolean; answered?: boolean } = {},
): Away {
  const place = placeOf(url, embedded);
  const isLate = error instanceof NoAnswer;
  if (sqlState(error) === canceled || (answered && isLate))
    return {
      away: `${place} is slow: ${sqlMessage(error)}`,
      brief: 'Postgres is slow',
      todo: 'Look at the load of Postgres and of its machine, and try again.',
    };
  const away = `${place} ${isPassing(error) ? 'does not answer' : 'refuses'}: ${sqlMessage(error)}`;
  const start = embedded
    ? 'restart metersync start, which runs the embedded Postgres, or set DATABASE_URL.'
    : 'start Postgres, or correct DATABASE_URL.';
  if (!isLate) return { away, todo: capitalized(start) };
  return {
    away,
    brief: 'Postgres does not answer in time',
    todo: `If Postgres is running, look at its load and its network, and try again. Otherwise ${start}`,
  };
}

/** A command or a part cannot go on, because Postgres cannot be used. */
export class WarehouseAway extends Error {
  readonly todo: string;

  constructor(url: string, error: unknown, embedded = false) {
    const { away, todo } = outageOf(url, error, { embedded });
    super(away, { cause: withoutStatement(error) });
    this.name = 'WarehouseAway';
    this.todo = todo;
  }
}

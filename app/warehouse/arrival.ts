import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { serverWaits } from '../../contract/retry-policy.ts';
import type { ServerWait } from '../process/running.ts';
import { serverWait } from '../process/server-wait.ts';
import type { Settings } from '../settings/settings.ts';
import { isPassing, WarehouseAway } from './absence.ts';
import { requireSchema } from './prepare.ts';

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
  return serverWait(search(), stopping, () => there);
}

/** Whether Postgres is only away. All other errors say what to do. */
const isAway = (error: unknown): boolean => error instanceof WarehouseAway && isPassing(error.cause);

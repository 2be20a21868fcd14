import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { serverWaits } from '../../contract/retry-policy.ts';
import { sqlState } from '../../db/connection/failures.ts';
import { arrivalOf } from '../process/arrival.ts';
import type { Arrival } from '../process/running.ts';
import type { Settings } from '../settings/settings.ts';
import { requireSchema } from './prepare.ts';

/** Classes of SQLSTATE of a server that cannot be used now, but may be soon. */
const passing = ['08', '53', '55', '57', '58'];

/**
 * Waits until the warehouse is there with the schema of this metersync. It logs once that the warehouse is
 * away, tries again and again, and logs once that it is there. A refusal, as of a password, or a missing
 * migration ends the search.
 * @throws Error that says what is refused or missing, if the first attempt finds that
 */
export async function awaitWarehouse(options: {
  readonly settings: Settings;
  readonly url: string;
  readonly log: Logger;
  readonly everyMs?: number;
}): Promise<Arrival> {
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
    log.warn(`${first.message}: waiting for it; events are taken meanwhile, and no work is done`);
    do await wait(everyMs, undefined, { signal: stopping.signal });
    while ((await absence()) !== undefined);
    there = true;
    log.info('the warehouse answers now');
  };
  return arrivalOf(search(), stopping, () => there);
}

/**
 * Whether nobody answers, or the server is starting, ending or full. An error without a cause says itself
 * what to do, and is not of that kind.
 */
function isAway(error: unknown): boolean {
  if (!(error instanceof Error) || error.cause === undefined) return false;
  const state = sqlState(error.cause);
  return state === undefined || passing.includes(state.slice(0, 2));
}

import type { Log } from '../contract/log.ts';
import type { MonotonicClock } from './clock.ts';
import { remember } from './remember.ts';

/**
 * Remembers for a while whether events can be taken: finding out costs a call to Temporal, and anyone may
 * ask. At most one call is under way at a time. Never rejects: an unknown answer counts as no.
 */
export function rememberReady({
  ready,
  forMs,
  clock,
  log,
}: {
  ready: () => boolean | Promise<boolean>;
  forMs: number;
  clock: MonotonicClock;
  log: Log;
}): () => Promise<boolean> {
  const find = async (): Promise<boolean> => {
    try {
      return await ready();
    } catch (error) {
      log.warn({ err: error }, 'readiness is not known');
      return false;
    }
  };
  return remember(find, forMs, () => clock.now());
}

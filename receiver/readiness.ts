import type { Log } from '../contract/log.ts';
import type { MonotonicClock } from './clock.ts';
import { remember } from './remember.ts';

/** Remembers for a while whether events can be taken, with one call at most under way. Never rejects. */
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

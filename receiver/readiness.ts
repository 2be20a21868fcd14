import type { Clock } from './clock.ts';
import type { Log } from './log.ts';

/**
 * Remembers for a while whether events can be taken: to find out costs a call to Temporal, and whoever finds the
 * address may ask. However many ask meanwhile, one call is on its way. Never rejects: what is not known is no.
 */
export function rememberReady({
  ready,
  forMs,
  clock,
  log,
}: {
  ready: () => boolean | Promise<boolean>;
  forMs: number;
  clock: Clock;
  log: Log;
}): () => Promise<boolean> {
  let answer: Promise<boolean> | undefined;
  let until = Number.POSITIVE_INFINITY;
  const find = async (): Promise<boolean> => {
    try {
      return await ready();
    } catch (error) {
      log.warn({ err: error }, 'readiness is not known');
      return false;
    } finally {
      // From when it is known: a call that takes long is not made again before.
      until = clock.now() + forMs;
    }
  };
  return () => {
    if (answer !== undefined && clock.now() < until) return answer;
    until = Number.POSITIVE_INFINITY;
    answer = find();
    return answer;
  };
}

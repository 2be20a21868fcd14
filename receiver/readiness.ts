import type { Clock } from './clock.ts';
import type { Log } from './log.ts';

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
      // Counted from when the answer is known, so that a slow call is not repeated meanwhile.
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

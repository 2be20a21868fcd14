import { serverWaits } from '../../contract/retry-policy.ts';
import { formatSeconds } from '../../contract/times.ts';

/**
 * Waits for what health asks of Postgres, within `ms`; by default `serverWaits.healthInAllMs`. A server that
 * hangs, or is behind a dead network, lets statements wait forever.
 */
export async function withTimeout<T>(
  asking: Promise<T>,
  ms: number = serverWaits.healthInAllMs,
): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new Error(`no answer within ${formatSeconds(ms / 1_000)}`)),
    ms,
  );
  try {
    return await Promise.race([asking, late]);
  } finally {
    clearTimeout(timer);
    // What comes later, as a connection that breaks, is of no interest.
    asking.catch(() => {});
  }
}

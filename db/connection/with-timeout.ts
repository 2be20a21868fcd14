import { serverWaits } from '../../contract/retry-policy.ts';
import { formatSeconds } from '../../contract/times.ts';

/** Waits at most `ms` for Postgres, because statements to a server that hangs wait forever. */
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
    // An error that comes later, such as a broken connection, is of no interest.
    asking.catch(() => {});
  }
}

import { serverWaits } from '../../contract/retry-policy.ts';
import { formatSeconds } from '../../contract/times.ts';

/** A server did not answer in time. */
export class NoAnswer extends Error {
  constructor(ms: number) {
    super(`no answer within ${formatSeconds(ms / 1_000)}`);
    this.name = 'NoAnswer';
  }
}

/** Waits at most `ms` for Postgres, because statements to a server that hangs wait forever. */
export async function withTimeout<T>(
  asking: Promise<T>,
  ms: number = serverWaits.healthInAllMs,
): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new NoAnswer(ms)), ms);
  try {
    return await Promise.race([asking, late]);
  } finally {
    clearTimeout(timer);
    // An error that comes later, such as a broken connection, is of no interest.
    asking.catch(() => {});
  }
}

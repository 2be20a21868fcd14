import { ApplicationFailure, Context } from '@temporalio/activity';
import { msToNumber } from '@temporalio/common/lib/time.js';
import { Failure } from '../contract/failures.ts';
import { sqlState, warehouseFailure, withoutStatement } from '../db/connection/failures.ts';
import { keepAlive, triesHere } from './activity-context.ts';

type Activity<I, O> = (input: I) => Promise<O>;

/** Maps errors to Temporal failures by the catalogue. `giveUp: false` makes every failure retryable. */
export function mapFailures<I, O>(
  activity: Activity<I, O>,
  final: { giveUp: boolean } = { giveUp: true },
): Activity<I, O> {
  return async (input) => {
    try {
      return await keepAlive(() => activity(input));
    } catch (error) {
      Context.current().cancellationSignal.throwIfAborted();
      const failure = asFailure(error);
      if (failure === undefined) throw withoutStatement(error);
      throw ApplicationFailure.create({
        type: failure.code,
        message: failure.message,
        nonRetryable: final.giveUp && failure.action !== 'retry',
        ...nextDelay(failure),
        cause: failure,
      });
    }
  };
}

/**
 * Returns the service's Retry-After if it is longer than the wait of the retry policy, because a shorter one
 * would use up the attempts too soon. The wait of the policy grows with the tries of the same place, and not with
 * all attempts. Temporal takes 0 to mean that there is no retry.
 */
function nextDelay({ retryAfterMs = 0 }: Failure): { nextRetryDelay?: number } {
  const { attempt, retryPolicy = {} } = Context.current().info;
  const { initialInterval = '1s', backoffCoefficient = 2, maximumInterval = '100s' } = retryPolicy;
  const afterMs = (tries: number): number => {
    const doubledMs = msToNumber(initialInterval) * backoffCoefficient ** (tries - 1);
    return Math.min(doubledMs, msToNumber(maximumInterval));
  };
  const wantedMs = Math.max(retryAfterMs, afterMs(triesHere()));
  return wantedMs === afterMs(attempt) ? {} : { nextRetryDelay: wantedMs };
}

/** Returns the failure of the catalogue; undefined for a defect of metersync, which Temporal retries. */
export function asFailure(error: unknown): Failure | undefined {
  if (error instanceof Failure) return error;
  const fromWarehouse = sqlState(error) !== undefined || isConnectionTrouble(error);
  const failure = fromWarehouse ? warehouseFailure(error) : undefined;
  return failure instanceof Failure ? failure : undefined;
}

function isConnectionTrouble(error: unknown): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code } = at as { code?: unknown };
    if (typeof code === 'string' && /^E[A-Z]+$/.test(code)) return true;
    if (/^Connection terminated|^timeout exceeded when trying to connect/.test(at.message)) return true;
  }
  return false;
}

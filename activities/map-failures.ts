import { ApplicationFailure, Context } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { Failure } from '../contract/failures.ts';
import { sqlState, warehouseFailure, withoutStatement } from '../db/failures.ts';
import { keepAlive } from './heartbeat.ts';

type Activity<I, O> = (input: I) => Promise<O>;

/**
 * Tells Temporal about failures in the words of the catalogue: whether trying again can help, and when the service
 * asked to be left alone until. `giveUp: false` is for work that must not be given up, whatever the failure.
 */
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
        // Waiting for one's turn is no trouble that a log should tell of.
        ...(failure.code === 'COMPANY_BUSY' ? { category: ApplicationFailureCategory.BENIGN } : {}),
        ...(failure.retryAfterMs === undefined ? {} : { nextRetryDelay: failure.retryAfterMs }),
        cause: failure,
      });
    }
  };
}

/** A failure of the catalogue; undefined for a mistake of ours, which Temporal retries and shows. */
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

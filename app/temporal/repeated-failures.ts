import { type FailureCode, failureTypes } from '../../contract/failures.ts';
import { limits } from '../../contract/limits.ts';

/** The message that the native library logs for each try of each poll while Temporal is away. */
const retriedCall = /^gRPC call (\w+) retried/;

/**
 * Makes the function that says whether a line of Temporal's log repeats a line of the last minute: another
 * attempt, or the same cause for an activity of the same type. In an outage each event causes several.
 * @param now milliseconds of a clock that only grows
 */
export function repeatedFailures(now: () => number): (message: string, meta?: object) => boolean {
  const quietUntil = new Map<string, number>();
  return (message, meta) => {
    const kind = retriedCall.exec(message)?.[1] ?? kindOfFailure(message, meta);
    if (kind === undefined) return false;
    if (now() < (quietUntil.get(kind) ?? 0)) return true;
    quietUntil.set(kind, now() + limits.failureLogMs);
    return false;
  };
}

function kindOfFailure(message: string, meta?: object): string | undefined {
  if (message !== 'Activity failed') return undefined;
  const { activityType, error } = meta as { activityType?: string; error?: { type?: FailureCode } };
  if (error?.type === undefined || failureTypes[error.type]?.action !== 'retry') return undefined;
  return `${activityType} ${error.type}`;
}

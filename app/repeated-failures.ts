import { type FailureCode, failureTypes } from '../contract/failures.ts';
import { limits } from '../contract/limits.ts';

/**
 * Makes the function that says whether a line of the SDK repeats one of the last minute: an activity of the same
 * type failed for the same cause, and is tried again. An outage fails the work of each event several times.
 * @param now milliseconds of a clock that only grows
 */
export function repeatedFailures(now: () => number): (message: string, meta?: object) => boolean {
  const quietUntil = new Map<string, number>();
  return (message, meta) => {
    if (message !== 'Activity failed') return false;
    const { activityType, error } = meta as { activityType?: string; error?: { type?: FailureCode } };
    if (error?.type === undefined || failureTypes[error.type]?.action !== 'retry') return false;
    const kind = `${activityType} ${error.type}`;
    if (now() < (quietUntil.get(kind) ?? 0)) return true;
    quietUntil.set(kind, now() + limits.failureLogMs);
    return false;
  };
}

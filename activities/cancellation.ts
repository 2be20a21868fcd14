import { AsyncLocalStorage } from 'node:async_hooks';
import { Context } from '@temporalio/activity';

const limited = new AsyncLocalStorage<AbortSignal>();

/** The signal that ends the work of this activity, or of the part of it that has a limit. */
export const cancellation = (): AbortSignal => limited.getStore() ?? Context.current().cancellationSignal;

/** Does a part of an activity's work that ends after `limitMs`. */
export const within = <T>(limitMs: number, work: () => Promise<T>): Promise<T> =>
  limited.run(AbortSignal.any([Context.current().cancellationSignal, AbortSignal.timeout(limitMs)]), work);

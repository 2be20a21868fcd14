import type { Executor } from '../db/connection/connect.ts';
import { sqlMessage, sqlState, withoutStatement } from '../db/connection/failures.ts';
import { beginOperation, finishOperation, type Operation } from '../db/operations.ts';

/** An action was not begun, because there is nothing to do or nobody to do it. */
export class NotBegun extends Error {}

interface Recorded<T> {
  readonly id: number;
  readonly ended: Promise<T>;
}

/**
 * Notes an operation in the log, begins its action, and notes how it ends, even if it fails or is refused.
 * @param action gets the operation's id in the log
 * @param inWords says what the action did
 * @param succeeded whether the action did what was asked; by default, if it ends without an error
 * @throws Error when the log cannot be written: then nothing was done
 */
export async function record<T>(
  db: Executor,
  operation: Operation,
  action: (id: number) => Promise<T>,
  inWords: (result: T) => string,
  succeeded: (result: T) => boolean = () => true,
): Promise<Recorded<T>> {
  const id = await beginOperation(db, operation);
  return { id, ended: finish(db, id, action, inWords, succeeded) };
}

/** Like `record`, for a caller that waits for the end. */
export async function recorded<T>(...args: Parameters<typeof record<T>>): Promise<T> {
  const { ended } = await record(...args);
  return await ended;
}

/**
 * Like `recorded`, but acts even if there is no log yet, and then notes it afterwards. `onUnnoted` gets the
 * reason if the action is not in the log.
 */
export async function recordedWherePossible<T>(
  db: Executor,
  operation: Operation,
  action: () => Promise<T>,
  inWords: (result: T) => string,
  onUnnoted: (reason: string) => void,
): Promise<T> {
  const begun = await beginOperation(db, operation).catch((error: Error) => error);
  if (typeof begun === 'number') return await finish(db, begun, action, inWords);
  const done = await action();
  try {
    // A server that did not answer is not asked a second time, because somebody waits.
    if (sqlState(begun) === undefined) throw begun;
    await recorded(db, operation, async () => done, inWords);
  } catch (error) {
    onUnnoted(sqlMessage(error));
  }
  return done;
}

async function finish<T>(
  db: Executor,
  id: number,
  action: (id: number) => Promise<T>,
  inWords: (result: T) => string,
  succeeded: (result: T) => boolean = () => true,
): Promise<T> {
  let result: T;
  try {
    result = await action(id);
  } catch (error) {
    const outcome = error instanceof NotBegun ? 'refused' : 'failed';
    await finishOperation(db, id, outcome, (withoutStatement(error) as Error).message);
    throw error;
  }
  await finishOperation(db, id, succeeded(result) ? 'done' : 'failed', inWords(result));
  return result;
}

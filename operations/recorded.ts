import type { Executor } from '../db/connect.ts';
import { beginOperation, finishOperation, type Operation } from '../db/operations.ts';

/** An action was not begun, as there is nothing to do or nobody to do it. */
export class Refused extends Error {}

/** An action that is noted in the log of operations. */
export interface Recorded<T> {
  /** Its id in the log. */
  readonly id: number;
  readonly ended: Promise<T>;
}

/**
 * Notes an operation in the log, begins its action, and notes its end: also one that fails or is refused.
 * @param inWords says what the action did
 * @throws Error when the log cannot be written: then nothing was done
 */
export async function record<T>(
  db: Executor,
  operation: Operation,
  action: () => Promise<T>,
  inWords: (result: T) => string,
): Promise<Recorded<T>> {
  const id = await beginOperation(db, operation);
  return { id, ended: finish(db, id, action, inWords) };
}

/** The same for a caller that waits for the end. */
export async function recorded<T>(...args: Parameters<typeof record<T>>): Promise<T> {
  const { ended } = await record(...args);
  return await ended;
}

async function finish<T>(
  db: Executor,
  id: number,
  action: () => Promise<T>,
  inWords: (result: T) => string,
): Promise<T> {
  let result: T;
  try {
    result = await action();
  } catch (error) {
    const outcome = error instanceof Refused ? 'refused' : 'failed';
    await finishOperation(db, id, outcome, (error as Error).message);
    throw error;
  }
  await finishOperation(db, id, 'done', inWords(result));
  return result;
}

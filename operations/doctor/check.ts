import { Failure, failureTypes } from '../../contract/failures.ts';
import { sqlMessage } from '../../db/connection/failures.ts';

type CheckState = 'ok' | 'warn' | 'fail' | 'not checked';

export interface Check {
  readonly name: string;
  readonly state: CheckState;
  readonly saw: string;
  /** What to do about it; null when there is nothing to do. */
  readonly todo: string | null;
}

export type Judged = Omit<Check, 'name'>;

export const ok = (saw: string): Judged => ({ state: 'ok', saw, todo: null });
export const warn = (saw: string, todo: string): Judged => ({ state: 'warn', saw, todo });
export const fail = (saw: string, todo: string): Judged => ({ state: 'fail', saw, todo });
export const notChecked = (saw: string, todo: string | null = null): Judged => ({
  state: 'not checked',
  saw,
  todo,
});

/** Runs one check. An error fails it, with the advice of the error, of the catalogue, or `todo`. */
export async function check(
  name: string,
  todo: string,
  look: () => Judged | Promise<Judged>,
): Promise<Check> {
  try {
    return { name, ...(await look()) };
  } catch (error) {
    if (error instanceof Failure) {
      return { name, ...fail(`${error.code}: ${error.message}`, failureTypes[error.code].operator) };
    }
    if (error instanceof Error && 'todo' in error)
      return { name, ...fail(error.message, String(error.todo)) };
    return { name, ...fail(wordsOf(error), todo) };
  }
}

/** Describes an error; if a host name has several addresses, the error of the first address. */
function wordsOf(error: unknown): string {
  const first = error instanceof AggregateError && error.message === '' ? error.errors[0] : error;
  return sqlMessage(first);
}

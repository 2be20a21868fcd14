import { DrizzleQueryError } from 'drizzle-orm';
import { Failure } from '../../contract/failures.ts';

/** Classes and codes with which Postgres refuses a value for good. */
const refusedClasses = ['22', '23'];
const refusedCodes = ['54000', '54001', '54011', '42846'];

/** An error with the fields that errors of pg or Node may have. */
type ErrorWithDetails = Error & Record<'code' | 'constraint' | 'detail', unknown>;
function* withCauses(error: unknown): Generator<ErrorWithDetails> {
  for (let at = error; at instanceof Error; at = at.cause) yield at as ErrorWithDetails;
}

/** Returns the SQLSTATE of an error, wrapped or not; undefined if Postgres was not reached. */
export function sqlState(error: unknown): string | undefined {
  for (const { code } of withCauses(error))
    if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)) return code;
  return undefined;
}

/** Returns the constraint that refused a row, if one did. */
export function constraintOf(error: unknown): string | undefined {
  for (const { constraint } of withCauses(error))
    if (typeof constraint === 'string') return constraint;
  return undefined;
}

/** Whether a row had no partition: such a check violation does not name a constraint. */
export function hasNoPartition(error: unknown): boolean {
  for (const { code, constraint } of withCauses(error))
    if (code === '23514') return constraint === undefined;
  return false;
}

/**
 * Lists what depends on something that was to be dropped, in the words of Postgres: `view mine
 * depends on view analytics.bills`. Undefined for any other error.
 */
export function dependentsIn(error: unknown): string[] | undefined {
  for (const { code, detail } of withCauses(error))
    if (code === '2BP01') return String(detail ?? '').split('\n');
  return undefined;
}

/**
 * Returns Postgres's message, without the statement and parameters that Drizzle puts before it. For
 * an unreadable value it adds the detail, which explains the value; other details quote whole rows.
 */
export function sqlMessage(error: unknown): string {
  let message = String(error);
  for (const one of withCauses(error)) {
    const unreadable = sqlState(one)?.startsWith('22') && typeof one.detail === 'string';
    message = unreadable ? `${one.message}: ${one.detail}` : one.message;
  }
  return message;
}

/**
 * Returns an error that may be printed, logged and stored. Postgres's message and code replace the
 * statement, its parameters and whole rows, any of which may contain a secret. An error that wraps
 * such an error keeps its class, and gets a cause without these texts.
 */
export function withoutStatement(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (error instanceof DrizzleQueryError || isFromPostgres(error)) return inPostgresWords(error);
  const cause = withoutStatement(error.cause);
  if (cause === error.cause) return error;
  const copy = Object.create(
    Object.getPrototypeOf(error),
    Object.getOwnPropertyDescriptors(error),
  ) as Error;
  copy.cause = cause;
  return copy;
}

const isFromPostgres = (error: Error): boolean =>
  'severity' in error && sqlState(error) !== undefined;

function inPostgresWords(error: Error): Error {
  const message = `Postgres: ${messageWithState(error)}`;
  const plain = new Error(message);
  const frames = (error.stack ?? '').split('\n').filter((line) => /^ {4}at /.test(line));
  plain.stack = [`Error: ${message}`, ...frames].join('\n');
  return Object.assign(plain, codeOf(error));
}

/** Returns the code of Postgres, or of the connection. */
function codeOf(error: unknown): { code?: string } {
  for (const { code } of withCauses(error)) if (typeof code === 'string') return { code };
  return {};
}

function messageWithState(error: unknown): string {
  const state = sqlState(error);
  return `${sqlMessage(error)}${state === undefined ? '' : ` (SQLSTATE ${state})`}`;
}

/** Whether Postgres refused a value: another attempt cannot help. */
export function isRefusal(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined) return false;
  return refusedClasses.includes(state.slice(0, 2)) || refusedCodes.includes(state);
}

/** Whether an error is our own mistake: a wrong statement or a missing table, not a permission. */
export const isMistake = (error: unknown): boolean =>
  isOfMistakes(error) && sqlState(error) !== notAllowed;

const notAllowed = '42501';
/** Behind a pooler another client prepared the statement in the session: another attempt helps. */
const preparedAlready = '42P05';

function isOfMistakes(error: unknown): boolean {
  const state = sqlState(error);
  return state !== preparedAlready && (state?.startsWith('42') ?? false);
}

/** Converts an error of pg to a failure of the catalogue; returns our own mistakes unchanged. */
export function warehouseFailure(error: unknown): unknown {
  // A mistake is not reported as trouble of Postgres.
  if (error instanceof Failure || isOfMistakes(error)) return error;
  const code = isRefusal(error) ? 'WAREHOUSE_VALUE_REFUSED' : 'WAREHOUSE_UNAVAILABLE';
  return new Failure(code, messageWithState(error), { cause: withoutStatement(error) });
}

/**
 * Processes all items together. If Postgres refuses a value, processes the halves, down to the items that it
 * refuses. These go to `refused`, and the others succeed. Returns the results of the parts, in order.
 */
export async function splitOnRefusal<T, R>(
  items: readonly T[],
  work: (items: readonly T[]) => Promise<R>,
  refused: (item: T, error: unknown) => R | Promise<R>,
): Promise<R[]> {
  try {
    return [await work(items)];
  } catch (error) {
    const [only] = items;
    if (!isRefusal(error) || only === undefined) throw error;
    if (items.length === 1) return [await refused(only, error)];
    const middle = Math.ceil(items.length / 2);
    const first = await splitOnRefusal(items.slice(0, middle), work, refused);
    return [...first, ...(await splitOnRefusal(items.slice(middle), work, refused))];
  }
}

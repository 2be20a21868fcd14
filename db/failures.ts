import { DrizzleQueryError } from 'drizzle-orm';
import { Failure } from '../contract/failures.ts';

/**
 * Classes and codes by which Postgres says that it cannot hold a value, however often it is asked.
 */
const refusedClasses = ['22', '23'];
const refusedCodes = ['54000', '54001', '54011', '42846'];

/**
 * SQLSTATE of an error thrown by pg, also when Drizzle wrapped it; undefined when Postgres was not
 * reached.
 */
export function sqlState(error: unknown): string | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const code = (at as { code?: unknown }).code;
    if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)) return code;
  }
  return undefined;
}

/**
 * Whether a row had no partition to go to: Postgres says so as of a check that it violates, but
 * names no constraint.
 */
export function hasNoPartition(error: unknown): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code, constraint } = at as { code?: unknown; constraint?: unknown };
    if (code === '23514') return constraint === undefined;
  }
  return false;
}

/**
 * Postgres's own words, without the statement and its parameters that Drizzle puts before them. Of
 * a value that it cannot read the detail says what is wrong with it; other details quote whole
 * rows.
 */
export function sqlMessage(error: unknown): string {
  let message = String(error);
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { detail } = at as { detail?: unknown };
    const unreadable = sqlState(at)?.startsWith('22') && typeof detail === 'string';
    message = unreadable ? `${at.message}: ${detail}` : at.message;
  }
  return message;
}

/**
 * The error as it may be shown, logged and kept: Postgres's own words and code in place of the
 * statement, its parameters and whole rows, any of which may hold a secret. Errors that wrap such a
 * one stay what they are, over a cause without it.
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

/** The code by which others know what happened: Postgres's, or that of the connection. */
function codeOf(error: unknown): { code?: string } {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as { code?: unknown };
    if (typeof code === 'string') return { code };
  }
  return {};
}

function messageWithState(error: unknown): string {
  const state = sqlState(error);
  return `${sqlMessage(error)}${state === undefined ? '' : ` (SQLSTATE ${state})`}`;
}

/** Whether Postgres refused a value: trying again cannot help. */
export function isRefusal(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined) return false;
  return refusedClasses.includes(state.slice(0, 2)) || refusedCodes.includes(state);
}

/** A wrong statement, or a missing table: our own mistake. A user who may not is none. */
export const isMistake = (error: unknown): boolean => {
  const state = sqlState(error);
  return state !== notAllowed && (state?.startsWith('42') ?? false);
};

const notAllowed = '42501';

/** Turns what pg throws into a failure of the catalogue; a mistake of ours is returned as it is. */
export function warehouseFailure(error: unknown): unknown {
  // Never called trouble of Postgres's, so that it shows as what it is.
  if (error instanceof Failure || sqlState(error)?.startsWith('42')) return error;
  const code = isRefusal(error) ? 'WAREHOUSE_VALUE_REFUSED' : 'WAREHOUSE_UNAVAILABLE';
  return new Failure(code, messageWithState(error), { cause: withoutStatement(error) });
}

import { Failure } from '../contract/failures.ts';

/** Classes and codes by which Postgres says that it cannot hold a value, however often it is asked. */
const refusedClasses = ['22', '23'];
const refusedCodes = ['54000', '54001', '54011', '42846'];

/** SQLSTATE of an error thrown by pg, also when Drizzle wrapped it; undefined when Postgres was not reached. */
export function sqlState(error: unknown): string | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const code = (at as { code?: unknown }).code;
    if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)) return code;
  }
  return undefined;
}

/**
 * Postgres's own words, without the statement and its parameters that Drizzle puts before them. Of a value that it
 * cannot read the detail says what is wrong with it; other details quote whole rows.
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

/** Whether Postgres refused a value: trying again cannot help. */
export function isRefusal(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined) return false;
  return refusedClasses.includes(state.slice(0, 2)) || refusedCodes.includes(state);
}

/** Our own mistake (a wrong statement, a missing table): never called trouble of Postgres's, so that it shows as what it is. */
const isMistake = (state: string | undefined): boolean => state?.startsWith('42') ?? false;

/** Turns what pg throws into a failure of the catalogue; a mistake of ours is returned as it is. */
export function warehouseFailure(error: unknown): unknown {
  if (error instanceof Failure || isMistake(sqlState(error))) return error;
  const state = sqlState(error);
  const message = `${sqlMessage(error)}${state === undefined ? '' : ` (SQLSTATE ${state})`}`;
  return new Failure(isRefusal(error) ? 'WAREHOUSE_VALUE_REFUSED' : 'WAREHOUSE_UNAVAILABLE', message, {
    cause: error,
  });
}

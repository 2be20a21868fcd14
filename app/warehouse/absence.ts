import { sqlMessage, sqlState, withoutStatement } from '../../db/connection/failures.ts';
import type { Away } from '../../health/measured.ts';

/** Classes of SQLSTATE of a server that cannot be used now, but may be soon. */
const passing = ['08', '53', '55', '57', '58'];

/** Whether nothing answers, or the server is starting, ending or full, so that another try may succeed. */
export function isPassing(error: unknown): boolean {
  const state = sqlState(error);
  return state === undefined || passing.includes(state.slice(0, 2));
}

/** `embedded`: the settings name no Postgres, so the embedded one is used. */
export function placeOf(url: string, embedded = false): string {
  const { host, pathname } = new URL(url);
  return embedded
    ? `The embedded Postgres at ${host}${pathname}`
    : `Postgres at ${host}${pathname} (DATABASE_URL)`;
}

/** Says that Postgres cannot be used, in the same words for every command, page and alarm. */
export function absenceOf(url: string, error: unknown, embedded = false): Away {
  return {
    away: `${placeOf(url, embedded)} ${isPassing(error) ? 'does not answer' : 'refuses'}: ${sqlMessage(error)}`,
    todo: embedded
      ? 'Restart metersync start, which runs the embedded Postgres, or set DATABASE_URL.'
      : 'Start Postgres, or correct DATABASE_URL.',
  };
}

/** A command or a part cannot go on, because Postgres cannot be used. */
export class WarehouseAway extends Error {
  readonly todo: string;

  constructor(url: string, error: unknown, embedded = false) {
    const { away, todo } = absenceOf(url, error, embedded);
    super(away, { cause: withoutStatement(error) });
    this.name = 'WarehouseAway';
    this.todo = todo;
  }
}

import type { Logger } from 'pino';
import { serverWaits } from '../contract/retry-policy.ts';
import type { Database } from '../db/connect.ts';
import { sqlMessage, sqlState } from '../db/failures.ts';
import { type BlockedView, type RefreshedViews, refreshViews } from '../db/fields/refresh-views.ts';
import { roles } from '../db/roles.ts';

const [notAllowed, locked] = ['42501', '55P03'];

export const mayNotMake = 'this user may not make typed views';
export const grantWriter = `Grant it the role ${roles.writer}; or run metersync views refresh as the owner of the warehouse.`;

export interface ViewKeeper {
  /** Call it when the catalogue has a new field or type. */
  changed(): void;
  /** Stops, and waits for a refresh that is under way. */
  stop(): Promise<void>;
}

/**
 * Makes the typed views again soon after the catalogue changed, and once at the start. A failure is logged
 * and tried again: views never keep records from being written.
 */
export function keepViews(options: {
  readonly db: Database;
  readonly log: Pick<Logger, 'info' | 'warn' | 'debug'>;
  readonly afterMs?: number;
}): ViewKeeper {
  const { db, log, afterMs = serverWaits.typedViewsGatherMs } = options;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let stopped = false;
  let lastWarning = '';

  const plan = (ms: number): void => {
    if (stopped || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      running = refresh();
    }, ms);
  };
  /** Logs a warning once, as the same cause comes again with every new field. */
  const warn = (fields: object, message: string): void => {
    const key = JSON.stringify([fields, message]);
    if (key !== lastWarning) log.warn(fields, message);
    lastWarning = key;
  };
  const refresh = async (): Promise<void> => {
    try {
      const { made, blocked, warnings } = await refreshViews(db, serverWaits.typedViewsLockMs);
      if (made.length > 0) log.info({ views: made.length }, 'typed views were made again');
      for (const view of blocked) warn({ ...view }, describeBlocked(view));
      for (const warning of warnings) warn({}, warning);
    } catch (error) {
      const state = sqlState(error);
      if (state === notAllowed) warn({ error: sqlMessage(error) }, `${mayNotMake}. ${grantWriter}`);
      else if (state === locked) log.debug('a view is being read: typed views are made again later');
      else warn({ error: sqlMessage(error) }, 'typed views could not be made again');
      plan(serverWaits.typedViewsAgainMs);
    }
  };
  plan(afterMs);
  return {
    changed: () => plan(afterMs),
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}

/** Makes the typed views again at once, for `metersync views refresh`. */
export async function refreshNow(db: Database): Promise<RefreshedViews> {
  try {
    return await refreshViews(db, serverWaits.typedViewsLockMs);
  } catch (error) {
    const state = sqlState(error);
    if (state === locked)
      throw new Error('a view is being read, or changed, right now: try again', { cause: error });
    if (state !== notAllowed) throw error;
    throw new Error(`${mayNotMake} (${sqlMessage(error)}). ${grantWriter}`, { cause: error });
  }
}

/** Describes the values that a view cannot hold, and why. */
export function sawBlocked({ view, columns, by }: BlockedView): string {
  const why = by.length === 0 ? '' : `, as ${by.join(', ')} ${by.length === 1 ? 'was' : 'were'} built on it`;
  return `${view} cannot take the type that holds all values of ${columns.join(', ')}${why}: other values show NULL there`;
}

/** Describes what the operator does about blocked views. */
export const blockedOperator = (blocked: readonly BlockedView[]): string =>
  blocked.some(({ by }) => by.length > 0)
    ? 'Drop what was built, run metersync views refresh, make it again.'
    : 'Run metersync views refresh: nothing is built on it any more.';

export const describeBlocked = (blocked: BlockedView): string =>
  `${sawBlocked(blocked)}. ${blockedOperator([blocked])}`;

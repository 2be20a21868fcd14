import { notifyPolicy } from '../contract/retry-policy.ts';
import { withTimeout } from '../db/connection/connect.ts';
import { sqlMessage } from '../db/connection/failures.ts';
import { type Look, type Looked, noteLook, noteSent } from '../db/watch/alarms.ts';
import { type AlarmNotice, seenIn } from '../health/alarms.ts';
import { alarmTypes } from '../health/findings.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';

export interface LookResult {
  /** Why the warehouse could not note the look; null if it noted it. In version 0.2 it was an object. */
  readonly absence: string | null;
}

export function watchActivities(deps: ActivityDependencies) {
  const {
    notifier,
    watching: { db },
    log,
  } = deps;
  const at = (): string => new Date(deps.wallClock()).toISOString();

  async function look(_: object): Promise<LookResult> {
    const health = await deps.readHealth(db);
    const noted =
      'away' in health.warehouse ? health.warehouse : await note({ seen: seenIn(health), at: at() });
    if ('away' in noted) {
      log.warn({ error: noted.away }, 'a look was not noted');
      return { absence: noted.away };
    }
    const { open, changes, toSend } = noted;
    for (const change of changes) logChange(log, change);
    await beatUnless(open.some((name) => alarmTypes[name].severity === 'page'));
    if (notifier.sends) await send(toSend);
    return { absence: null };
  }

  /** Postgres may be read and take no writes: its disk is full, or it is a standby. Then it is away, too. */
  async function note(noting: Look): Promise<Looked | { readonly away: string }> {
    try {
      return await withTimeout(noteLook(db, noting));
    } catch (error) {
      return { away: `Postgres takes no writes: ${sqlMessage(error)}` };
    }
  }

  /** Sends alarms in order, until one fails or the time is over. A repeated alarm has the same id. */
  async function send(notices: readonly AlarmNotice[]): Promise<void> {
    const until = deps.now() + notifyPolicy.sendMs;
    for (const notice of notices) {
      if (deps.now() > until) return;
      const error = await errorOf(notifier.send(notice));
      await noteSent(db, { ...notice, at: at(), error });
      if (error !== null) return;
    }
  }

  async function beatUnless(pageIsOpen: boolean): Promise<void> {
    if (pageIsOpen) return;
    await notifier
      .beat()
      .catch((error: Error) => log.warn({ error: error.message }, 'HEARTBEAT_URL was not called'));
  }

  return {
    /**
     * Judges the deployment's health: beats, opens and closes alarms, and sends all that were not sent. It does
     * nothing while the warehouse accepts no writes.
     */
    look: mapFailures(look),
  };
}

const logChange = (
  log: ActivityDependencies['log'],
  { alert, change, severity, detail }: AlarmNotice,
): void =>
  log[severity === 'page' && change === 'opened' ? 'error' : 'warn'](
    { alert, change, severity, detail },
    `alarm ${change}`,
  );

const errorOf = async (sending: Promise<void>): Promise<string | null> =>
  await sending.then(
    () => null,
    (failure: Error) => failure.message,
  );

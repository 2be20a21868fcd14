import { randomUUID } from 'node:crypto';
import { notifyPolicy } from '../contract/retry-policy.ts';
import { sqlMessage } from '../db/connection/failures.ts';
import { withTimeout } from '../db/connection/with-timeout.ts';
import { type Carried, type Look, type Looked, noteLook } from '../db/watch/look.ts';
import { noteSent } from '../db/watch/sent.ts';
import { type AlarmNotice, findingOf, noticeOf, seenIn } from '../health/alarms.ts';
import { alarmTypes } from '../health/findings.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';

/** The warehouse is away: what cannot be written there is carried from look to look by Temporal. */
export interface WarehouseAbsence extends Omit<Carried, 'openedAt'> {
  /** When the alarm was opened; null while its minutes last. */
  readonly openedAt: string | null;
}

export interface LookInput {
  /** What the last look returned. */
  readonly absence: WarehouseAbsence | null;
}

export interface LookResult {
  readonly absence: WarehouseAbsence | null;
}

/** The alarm of an absence whose minutes were over. */
function openedIn(absence: WarehouseAbsence | null): Carried | undefined {
  const openedAt = absence?.openedAt ?? null;
  if (absence === null || openedAt === null) return undefined;
  return { ...absence, openedAt };
}

export function watchActivities(deps: ActivityDependencies) {
  const {
    notifier,
    watching: { db },
    log,
  } = deps;
  const at = (): string => new Date(deps.wallClock()).toISOString();

  async function look({ absence }: LookInput): Promise<LookResult> {
    const health = await deps.readHealth(db);
    const seen = seenIn(health);
    if ('away' in health.warehouse) {
      const down = findingOf(seen, { name: 'WarehouseDown', key: '' });
      return { absence: down === undefined ? absence : await lookWithout(deps, absence, down.saw) };
    }
    const carried = openedIn(absence);
    const noted = await note({ seen, at: at(), carried });
    if ('away' in noted) return { absence: await lookWithout(deps, absence, noted.away) };
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
      const away = `Postgres takes no writes: ${sqlMessage(error)}`;
      log.warn({ error: away }, 'a look was not noted');
      return { away };
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
    /** Judges the deployment's health: beats, opens and closes alarms, and sends all that were not sent. */
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

/** Opens WarehouseDown when its minutes are over, and sends it until it was taken. */
async function lookWithout(
  deps: ActivityDependencies,
  absence: WarehouseAbsence | null,
  detail: string,
): Promise<WarehouseAbsence> {
  const { notifier, log } = deps;
  const at = new Date(deps.wallClock()).toISOString();
  const now = absence ?? {
    id: randomUUID(),
    name: 'WarehouseDown' as const,
    detail,
    since: at,
    openedAt: null,
    notified: false,
  };
  const minutes = (Date.parse(at) - Date.parse(now.since)) / 60_000;
  if (minutes < alarmTypes.WarehouseDown.forMinutes) return now;
  const opened = { ...now, openedAt: now.openedAt ?? at };
  const notice = noticeOf({ ...now, key: '' }, { since: now.since, until: null });
  if (now.openedAt === null) logChange(log, notice);
  if (now.notified || !notifier.sends) return opened;
  const error = await errorOf(notifier.send(notice));
  if (error !== null) log.warn({ error }, 'an alarm was not sent');
  return { ...opened, notified: error === null };
}

const errorOf = async (sending: Promise<void>): Promise<string | null> =>
  await sending.then(
    () => null,
    (failure: Error) => failure.message,
  );

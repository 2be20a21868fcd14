import { randomUUID } from 'node:crypto';
import { seenIn } from '../contract/alert-changes.ts';
import { alertTypes } from '../contract/alerts.ts';
import { noticeOf } from '../contract/notification.ts';
import { notifyPolicy } from '../contract/retry-policy.ts';
import { answered } from '../db/answered.ts';
import { sqlMessage } from '../db/failures.ts';
import { deliverNext } from '../db/watch/deliver.ts';
import { type Carried, giveUp, type Look, type Looked, noteLook } from '../db/watch/look.ts';
import type { ActivityDependencies } from './dependencies.ts';
import { mapFailures } from './map-failures.ts';

/** The warehouse is away: what cannot be written there is carried from look to look by Temporal. */
export interface Absence extends Omit<Carried, 'openedAt' | 'notified'> {
  /** When the alarm was opened; null while its minutes last. */
  readonly openedAt: string | null;
  /** Targets that took the alarm. */
  readonly notifiedTargets: readonly string[];
}

export interface LookInput {
  /** What the last look returned. */
  readonly absence: Absence | null;
  /** Whether a test is sent, too. */
  readonly test: boolean;
}

export interface LookResult {
  readonly absence: Absence | null;
  /** The message of what changed; null without a change. */
  readonly messageId: string | null;
}

/** The alarm of an absence whose minutes were over. It is noted even without a target. */
function openedIn(absence: Absence | null): Carried | undefined {
  const openedAt = absence?.openedAt ?? null;
  if (absence === null || openedAt === null) return undefined;
  return { ...absence, openedAt, notified: absence.notifiedTargets.length > 0 };
}

export function watchActivities(deps: ActivityDependencies) {
  const {
    notifier,
    watching: { db },
    log,
  } = deps;
  const at = (): string => new Date(deps.wallClock()).toISOString();
  const { targets } = notifier;

  async function look({ absence, test }: LookInput): Promise<LookResult> {
    const health = await deps.readHealth(db);
    if ('away' in health.warehouse) {
      const [down] = alertTypes.WarehouseDown.judge(health);
      return {
        absence: down === undefined ? absence : await lookWithout(deps, absence, down.detail),
        messageId: null,
      };
    }
    const seen = seenIn(health);
    const carried = openedIn(absence);
    const noted = await note({ seen, at: at(), targets, carried, test });
    if ('away' in noted) return { absence: await lookWithout(deps, absence, noted.away), messageId: null };
    const { open, message } = noted;
    for (const { alert, change, severity, detail } of message?.alerts ?? [])
      log[severity === 'page' && change === 'opened' ? 'error' : 'warn'](
        { alert, change, severity, detail },
        `alarm ${change}`,
      );
    await beatUnless(open.some((name) => alertTypes[name].severity === 'page'));
    await Promise.all(targets.map(sendWaiting));
    await forget();
    return { absence: null, messageId: message?.id ?? null };
  }

  /** Postgres may be read and take no writes: its disk is full, or it is a standby. Then it is away, too. */
  async function note(noting: Look): Promise<Looked | { readonly away: string }> {
    try {
      return await answered(noteLook(db, noting));
    } catch (error) {
      const away = `Postgres takes no writes: ${sqlMessage(error)}`;
      log.warn({ error: away }, 'a look was not noted');
      return { away };
    }
  }

  /** Sends what waits for a target, in order, until it fails or its time is up. */
  async function sendWaiting(target: string): Promise<void> {
    const until = deps.now() + notifyPolicy.sendMs;
    while (deps.now() < until) {
      const became = await deliverNext(db, {
        target,
        now: at,
        send: (message) => notifier.send(target, message),
      });
      if (became === 'none') return;
      notifier.onSent(target, became === 'sent');
      if (became === 'failed') return;
    }
  }

  async function forget(): Promise<void> {
    for (const { target, messages } of await giveUp(db, { targets, at: at() }))
      log.warn({ target, messages }, 'notifications were given up: their target took none for a day');
  }

  async function beatUnless(pageIsOpen: boolean): Promise<void> {
    if (pageIsOpen) return;
    await notifier
      .beat()
      .catch((error: Error) => log.warn({ error: error.message }, 'HEARTBEAT_URL was not called'));
  }

  return {
    /**
     * Looks at the deployment's health: beats, opens and closes alarms, and notifies the targets of changes.
     */
    look: mapFailures(look),
  };
}

/** Opens WarehouseDown when its minutes are over, and notifies each target until it took it. */
async function lookWithout(
  deps: ActivityDependencies,
  absence: Absence | null,
  detail: string,
): Promise<Absence> {
  const { notifier, log } = deps;
  const at = new Date(deps.wallClock()).toISOString();
  const now = absence ?? {
    id: randomUUID(),
    name: 'WarehouseDown' as const,
    detail,
    since: at,
    openedAt: null,
    notifiedTargets: [],
  };
  const minutes = (Date.parse(at) - Date.parse(now.since)) / 60_000;
  if (minutes < alertTypes.WarehouseDown.forMinutes) return now;
  const alarm = { ...now, key: '' };
  const message = { id: now.id, at, alerts: [noticeOf('opened', alarm, { since: now.since, until: null })] };
  const notify = async (target: string): Promise<string[]> => {
    if (now.notifiedTargets.includes(target)) return [target];
    const error = await notifier.send(target, message).then(
      () => undefined,
      (failure: Error) => failure.message,
    );
    notifier.onSent(target, error === undefined);
    if (error === undefined) return [target];
    log.warn({ target, error }, 'a notification was not taken');
    return [];
  };
  const notified = await Promise.all(notifier.targets.map(notify));
  return { ...now, openedAt: now.openedAt ?? at, notifiedTargets: notified.flat() };
}

import { serverWaits } from '../../contract/retry-policy.ts';
import { timeAgo } from '../../contract/times.ts';
import { counted } from '../../contract/words.ts';
import type { AlarmName } from '../../health/findings.ts';
import { verdictOf } from '../../health/verdict.ts';
import { acknowledge } from '../../operations/acknowledge.ts';
import { type Alarm, readAlarms } from '../../operations/alarms.ts';
import { healthOf } from '../../operations/health.ts';
import { recorded } from '../../operations/recorded.ts';
import { asOperation } from '../as-operation.ts';
import { UsageError } from '../errors.ts';
import { print, printJson } from '../print.ts';
import { paragraph } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface AlertsOptions {
  readonly closed?: boolean;
  readonly limit: number;
  readonly json?: boolean;
}

/** `metersync alerts list`: prints the alarms that workers raised, and when they were sent. */
export async function alertsList({ closed = false, limit, json }: AlertsOptions): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db, context }) => {
    const isSent = context.settings.notify.target !== undefined;
    const { alerts, lookedAt } = await readAlarms(db, { closed, limit });
    if (json) return printJson({ alerts, lookedAt });
    const none = closed ? 'No alarm was closed.' : 'No alarm is open.';
    const opened = alerts.filter(({ openedAt }) => openedAt !== null);
    print(
      ...(opened.length === 0 ? [none] : opened.flatMap((alert) => describe(alert, isSent))),
      lookedAt === null ? 'the watch has not run yet' : `last watch: ${timeAgo(lookedAt)}`,
    );
  });
}

function describe(alert: Alarm, isSent: boolean): string[] {
  const { name, key, detail, severity, openedAt, notifiedAt, error, closedAt } = alert;
  const closed = closedAt === null ? '' : `; closed ${timeAgo(closedAt)}`;
  const nobody = `nobody was notified${isSent ? '' : ': NOTIFY_URL is not set here'}`;
  const notified = notifiedAt === null ? nobody : `sent ${timeAgo(notifiedAt)}`;
  return [
    ...paragraph(
      '',
      `${name}${key === '' ? '' : ` ${key}`} (${severity ?? 'of another version'}): ${detail}`,
    ),
    ...paragraph('  ', `open since ${timeAgo(openedAt ?? '')}${closed}; ${notified}`),
    ...(error === null ? [] : paragraph('  ', `NOTIFY_URL: ${error}`)),
  ];
}

/** `metersync alerts acknowledge`: notes that somebody knows of a finding, or takes that back. */
export async function alertsAcknowledge(
  name: AlarmName,
  options: { key?: string; note?: string; undo?: boolean; json?: boolean },
): Promise<void> {
  const { key, note, undo = false } = options;
  if (undo && note !== undefined) throw new UsageError('--undo withdraws the note, too: leave out --note');
  await withWarehouse({ temporal: 'if running' }, async ({ db, context }) => {
    const { settings, stack } = context;
    const temporal = stack.hasTemporal ? stack.temporal : undefined;
    const { answerMs } = serverWaits;
    const health = await healthOf({ settings, databaseUrl: stack.databaseUrl, temporal, answerMs })(db);
    const operation = asOperation(settings, undo ? 'alerts unacknowledge' : 'alerts acknowledge', {
      name,
      key,
    });
    const by = undo ? undefined : { by: operation.actor, note: note ?? null };
    const inWords = (of: readonly unknown[]) =>
      `${counted(of.length, 'finding')} ${undo ? 'no longer acknowledged' : 'acknowledged'}${note === undefined ? '' : `: ${note}`}`;
    const found = await recorded(
      db,
      operation,
      () => acknowledge(db, verdictOf(health), { name, key }, by),
      inWords,
    );
    if (options.json)
      printJson({ acknowledged: !undo, findings: found.map(({ alarm, key }) => ({ name: alarm, key })) });
    else print(inWords(found));
  });
}

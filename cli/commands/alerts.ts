import { timeAgo } from '../../contract/times.ts';
import type { DeliveryResult } from '../../db/read/watch.ts';
import { type Alarm, readAlarms } from '../../operations/alarms.ts';
import { print, printJson } from '../print.ts';
import { paragraph } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

export interface AlertsOptions {
  readonly closed?: boolean;
  readonly limit: number;
  readonly json?: boolean;
}

/** `metersync alerts list`: prints the alarms that workers raised, and who was notified. */
export async function alertsList({ closed = false, limit, json }: AlertsOptions): Promise<void> {
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const { alerts, targets, lookedAt } = await readAlarms(db, { closed, limit });
    if (json) return printJson({ alerts, targets, lookedAt });
    const none = closed ? 'No alarm was closed.' : 'No alarm is open.';
    print(
      ...(alerts.length === 0 ? [none] : alerts.flatMap(describe)),
      lookedAt === null ? 'the watch has not run yet' : `last watch: ${timeAgo(lookedAt)}`,
      ...targets.map(describeTarget),
    );
  });
}

function describe(alert: Alarm): string[] {
  const { name, key, detail, severity, pendingSince, openedAt, notifiedAt, error, closedAt } = alert;
  const since =
    openedAt === null ? `began ${timeAgo(pendingSince)}, not open yet` : `open ${timeAgo(openedAt)}`;
  const times = [since, ...(closedAt === null ? [] : [`closed ${timeAgo(closedAt)}`])];
  const notified = notifiedAt === null ? 'not notified yet' : `notified ${timeAgo(notifiedAt)}`;
  return [
    ...paragraph(
      '',
      `${name}${key === '' ? '' : ` ${key}`} (${severity ?? 'of another version'}): ${detail}`,
    ),
    ...paragraph('  ', [...times, notified].join('; ')),
    ...(error === null ? [] : paragraph('  ', `not sent: ${error}`)),
  ];
}

function describeTarget({ target, sentAt, attempts, error }: DeliveryResult): string {
  const last = sentAt === null ? 'took nothing yet' : `last took a message ${timeAgo(sentAt)}`;
  return `${target}: ${last}${error === null ? '' : `; ${attempts} tries since: ${error}`}`;
}

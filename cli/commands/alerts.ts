import { timeAgo } from '../../contract/times.ts';
import { type Alarm, readAlarms } from '../../operations/alarms.ts';
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
  await withWarehouse({ temporal: false }, async ({ db }) => {
    const { alerts, lookedAt } = await readAlarms(db, { closed, limit });
    if (json) return printJson({ alerts, lookedAt });
    const none = closed ? 'No alarm was closed.' : 'No alarm is open.';
    const opened = alerts.filter(({ openedAt }) => openedAt !== null);
    print(
      ...(opened.length === 0 ? [none] : opened.flatMap(describe)),
      lookedAt === null ? 'the watch has not run yet' : `last watch: ${timeAgo(lookedAt)}`,
    );
  });
}

function describe(alert: Alarm): string[] {
  const { name, key, detail, severity, openedAt, notifiedAt, error, closedAt } = alert;
  const closed = closedAt === null ? '' : `; closed ${timeAgo(closedAt)}`;
  const notified = notifiedAt === null ? 'nobody was notified' : `sent ${timeAgo(notifiedAt)}`;
  return [
    ...paragraph(
      '',
      `${name}${key === '' ? '' : ` ${key}`} (${severity ?? 'of another version'}): ${detail}`,
    ),
    ...paragraph('  ', `open since ${timeAgo(openedAt ?? '')}${closed}; ${notified}`),
    ...(error === null ? [] : paragraph('  ', `NOTIFY_URL: ${error}`)),
  ];
}

import type { Executor } from '../db/connection/connect.ts';
import { type ListedAlert, listAlerts, readLastLook } from '../db/read/watch.ts';
import { alarmTypes, isAlarmName } from '../health/findings.ts';

/** An alarm with its severity; null if it is of another version. */
export interface Alarm extends ListedAlert {
  readonly severity: 'page' | 'ticket' | null;
}

/** The alarms that workers raised, and when the watch last ran. */
export interface Alarms {
  readonly alerts: readonly Alarm[];
  readonly lookedAt: string | null;
}

/** Reads live alarms, or the last closed ones. */
export async function readAlarms(
  db: Executor,
  options: { readonly closed?: boolean; readonly limit: number },
): Promise<Alarms> {
  const alerts = (await listAlerts(db, options)).map((alert) => ({
    ...alert,
    severity: isAlarmName(alert.name) ? alarmTypes[alert.name].severity : null,
  }));
  const { lookedAt } = await readLastLook(db);
  return { alerts, lookedAt };
}

import { keyOf } from './alarm-notice.ts';
import { type AlertName, type AlertType, alertNames, alertTypes, type Raised } from './alerts.ts';
import type { Health } from './verdict.ts';

/** An alarm as it is raised now. */
export interface RaisedAlarm extends Raised {
  readonly name: AlertName;
  readonly key: string;
}

/** What one look at a deployment's health found. */
export interface Seen {
  readonly raised: readonly RaisedAlarm[];
  /** Alarms of which nobody knows: what they ask about is away. They stay as they are. */
  readonly unknown: ReadonlySet<AlertName>;
}

/** Asks the catalogue which alarms are raised. */
export function seenIn(health: Health): Seen {
  const raised: RaisedAlarm[] = [];
  const unknown = new Set<AlertName>();
  for (const name of alertNames) {
    const { judge }: AlertType = alertTypes[name];
    const found = judge?.(health);
    if (found === undefined) unknown.add(name);
    else raised.push(...found.map((one) => ({ ...one, name, key: keyOf(one.labels) })));
  }
  return { raised, unknown };
}

/** An alarm that is not closed. Times are milliseconds. */
export interface LiveAlarm {
  readonly id: string;
  readonly name: AlertName;
  readonly key: string;
  readonly pendingSince: number;
  readonly openedAt: number | null;
}

/** What becomes of alarms at a look. */
export interface AlarmChanges<Alarm extends LiveAlarm> {
  /** Begun, and not known before. */
  readonly begin: readonly RaisedAlarm[];
  /** Over before their minutes were. */
  readonly forget: readonly Alarm[];
  readonly open: readonly Alarm[];
  readonly close: readonly Alarm[];
}

/** Decides what becomes of the live alarms, those that just began among them. */
export function changesOf<Alarm extends LiveAlarm>(
  live: readonly Alarm[],
  { raised, unknown }: Seen,
  at: number,
): AlarmChanges<Alarm> {
  const idOf = ({ name, key }: Pick<LiveAlarm, 'name' | 'key'>): string => `${name} ${key}`;
  const now = new Set(raised.map(idOf));
  const known = new Set(live.map(idOf));
  const holds = live.filter((alarm) => now.has(idOf(alarm)));
  const over = live.filter((alarm) => !now.has(idOf(alarm)) && !unknown.has(alarm.name));
  return {
    begin: raised.filter((alarm) => !known.has(idOf(alarm))),
    forget: over.filter(({ openedAt }) => openedAt === null),
    close: over.filter(({ openedAt }) => openedAt !== null),
    open: holds.filter(
      ({ name, openedAt, pendingSince }) =>
        openedAt === null && at - pendingSince >= alertTypes[name].forMinutes * 60_000,
    ),
  };
}

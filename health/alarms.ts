import { type AlarmName, alarmTypes, runbookOf, watchedNames } from './findings.ts';
import type { Health } from './measured.ts';
import { type Finding, findingsOf, needsNobody, plain } from './verdict.ts';

/** A finding that is an alarm once it has lasted. */
export interface Raised extends Pick<Finding, 'key' | 'saw' | 'counts' | 'todo'> {
  readonly alarm: AlarmName;
}

/** What the watch found when it looked at the health of a deployment. */
export interface Seen {
  readonly raised: readonly Raised[];
  /** Alarms that could not be evaluated because their source is unreachable. They keep their state. */
  readonly unknown: ReadonlySet<AlarmName>;
}

/** Lists the findings that may become alarms. */
export function seenIn(health: Health): Seen {
  const found = watchedNames.map((alarm) => ({
    alarm,
    findings: findingsOf(alarm, health)?.filter((finding) => !needsNobody(finding)),
  }));
  return {
    raised: found.flatMap(({ alarm, findings = [] }) => findings.map((one) => ({ ...one, alarm }))),
    unknown: new Set(found.flatMap(({ alarm, findings }) => (findings === undefined ? [alarm] : []))),
  };
}

/** Whether a worker can open an alarm: the watch runs on workers, through Temporal, and writes to the warehouse. */
export const opensAlarms = (alarm: AlarmName, { temporal, warehouse }: Health): boolean =>
  !(
    'away' in temporal ||
    'away' in warehouse ||
    temporal.idle.includes('watch') ||
    alarmTypes[alarm].stopsWatch
  );

/** An alarm that is not closed. Times are milliseconds. */
export interface LiveAlarm {
  readonly id: string;
  readonly name: AlarmName;
  readonly key: string;
  readonly pendingSince: number;
  readonly openedAt: number | null;
}

/** How the alarms change after the watch has looked. */
interface AlarmChanges<Alarm extends LiveAlarm> {
  /** Findings that are new. */
  readonly begin: readonly Raised[];
  /** Alarms whose finding ended before it had lasted long enough to open them. */
  readonly forget: readonly Alarm[];
  readonly open: readonly Alarm[];
  readonly close: readonly Alarm[];
}

/** The finding of an alarm, if it is still there. */
export const findingOf = (
  { raised }: Seen,
  { name, key }: Pick<LiveAlarm, 'name' | 'key'>,
): Raised | undefined => raised.find((one) => one.alarm === name && one.key === key);

/** Decides how the live alarms change. They include the alarms that have just begun. */
export function changesOf<Alarm extends LiveAlarm>(
  live: readonly Alarm[],
  seen: Seen,
  at: number,
): AlarmChanges<Alarm> {
  const holds = live.filter((alarm) => findingOf(seen, alarm) !== undefined);
  const over = live.filter((alarm) => !holds.includes(alarm) && !seen.unknown.has(alarm.name));
  return {
    begin: seen.raised.filter(
      ({ alarm, key }) => !live.some((known) => known.name === alarm && known.key === key),
    ),
    forget: over.filter(({ openedAt }) => openedAt === null),
    close: over.filter(({ openedAt }) => openedAt !== null),
    open: holds.filter(
      ({ name, openedAt, pendingSince }) =>
        openedAt === null && at - pendingSince >= alarmTypes[name].forMinutes * 60_000,
    ),
  };
}

/** What is sent when an alarm opens, and when it is over. */
export interface AlarmNotice {
  readonly change: 'opened' | 'resolved';
  /** The same in the messages `opened` and `resolved`. */
  readonly id: string;
  readonly alert: AlarmName;
  readonly severity: 'page' | 'ticket';
  readonly labels: Readonly<Record<string, string>>;
  /** The failure (docs/reference/failures.md), if the alarm is about a failure. */
  readonly code: string | null;
  readonly means: string;
  readonly detail: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly todo: readonly string[];
  readonly runbook: string;
  /** When it opened and when it ended, in RFC 3339. */
  readonly since: string;
  readonly until: string | null;
}

/** Describes an alarm that opened or is over. */
export function noticeOf(
  { id, name, key, detail }: { id: string; name: AlarmName; key: string; detail: string },
  times: { since: string; until: string | null },
  raised?: Raised,
): AlarmNotice {
  const { severity, means, todo } = alarmTypes[name];
  const labels = Object.fromEntries(key === '' ? [] : key.split(',').map((pair) => pair.split('=')));
  return {
    change: times.until === null ? 'opened' : 'resolved',
    id,
    alert: name,
    severity,
    labels,
    code: labels.code ?? null,
    means,
    detail,
    counts: raised?.counts ?? {},
    todo: [raised?.todo ?? plain(todo)],
    runbook: runbookOf(name),
    ...times,
  };
}

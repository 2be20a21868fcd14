import { type AlertName, type AlertType, alertTypes, type Raised, runbookOf } from './alerts.ts';

/** What became of an alarm; `test` is none, but takes the same way. */
export type AlertChange = 'opened' | 'resolved' | 'reminder' | 'test';

/** One alarm in a message. */
export interface AlarmNotice {
  readonly change: AlertChange;
  /** The same from opened to resolved: targets that know it merge what belongs together. */
  readonly id: string;
  readonly alert: string;
  readonly severity: 'page' | 'ticket';
  readonly labels: Readonly<Record<string, string>>;
  /** The failure of docs/reference/failures.md, where the alarm is about one. */
  readonly code: string | null;
  readonly means: string;
  readonly detail: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly todo: readonly string[];
  readonly runbook: string;
  /** When it opened, and ended: RFC 3339. */
  readonly since: string;
  readonly until: string | null;
}

/** A message to all targets: what one look changed. */
export interface Notification {
  /** The same for each target and each try. */
  readonly id: string;
  readonly at: string;
  readonly alerts: readonly AlarmNotice[];
}

/** Writes labels as a key: `kind=full,state=partial`. */
export const keyOf = (labels: Raised['labels']): string =>
  Object.entries(labels)
    .map(([label, value]) => `${label}=${value}`)
    .join(',');

/** Reads the labels of a key; their values hold neither sign. */
export const labelsOf = (key: string): Raised['labels'] =>
  key === '' ? {} : Object.fromEntries(key.split(',').map((pair) => pair.split('=') as [string, string]));

/** Describes a change of an alarm for targets. */
export function noticeOf(
  change: AlertChange,
  { id, name, key, detail }: { id: string; name: AlertName; key: string; detail: string },
  times: { since: string; until: string | null },
  raised?: Raised,
): AlarmNotice {
  const { severity, means, act }: AlertType = alertTypes[name];
  const labels = labelsOf(key);
  return {
    change,
    id,
    alert: name,
    severity,
    labels,
    code: labels.code ?? null,
    means,
    detail,
    counts: raised?.counts ?? {},
    todo: raised?.todo === undefined ? act : [raised.todo],
    runbook: runbookOf(name),
    ...times,
  };
}

/** What `metersync notify test` sends. */
export const testOf = (id: string, at: string): AlarmNotice => ({
  change: 'test',
  id,
  alert: 'Test',
  severity: 'ticket',
  labels: {},
  code: null,
  means: 'This is a test: alarms take the same way.',
  detail: 'metersync notify test',
  counts: {},
  todo: ['Nothing.'],
  runbook: 'docs/runbooks.md',
  since: at,
  until: at,
});

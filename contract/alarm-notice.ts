import { type AlertName, type AlertType, alertTypes, type Raised, runbookOf } from './alerts.ts';

/** What is sent of an alarm when it opens, and when it is over. */
export interface AlarmNotice {
  readonly change: 'opened' | 'resolved';
  /** The same from opened to resolved. */
  readonly id: string;
  readonly alert: AlertName;
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

/** Writes labels as a key: `kind=full,state=partial`. */
export const keyOf = (labels: Raised['labels']): string =>
  Object.entries(labels)
    .map(([label, value]) => `${label}=${value}`)
    .join(',');

/** Reads the labels of a key; their values hold neither sign. */
export const labelsOf = (key: string): Raised['labels'] =>
  key === '' ? {} : Object.fromEntries(key.split(',').map((pair) => pair.split('=') as [string, string]));

/** Describes an alarm that opened, or is over. */
export function noticeOf(
  { id, name, key, detail }: { id: string; name: AlertName; key: string; detail: string },
  times: { since: string; until: string | null },
  raised?: Raised,
): AlarmNotice {
  const { severity, means, act }: AlertType = alertTypes[name];
  const labels = labelsOf(key);
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
    todo: raised?.todo === undefined ? act : [raised.todo],
    runbook: runbookOf(name),
    ...times,
  };
}

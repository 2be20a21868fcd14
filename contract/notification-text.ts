import type { AlarmNotice, AlertChange, Notification } from './notification.ts';

const order: readonly AlertChange[] = ['opened', 'reminder', 'resolved', 'test'];
const inWords: Readonly<Record<AlertChange, string>> = {
  opened: 'opened',
  reminder: 'still open',
  resolved: 'resolved',
  test: 'test',
};

/** Sums up a message: `metersync: 2 opened, 1 resolved`. */
export function headlineOf({ alerts }: Notification): string {
  const counts = order.flatMap((change) => {
    const count = alerts.filter((notice) => notice.change === change).length;
    return count === 0 ? [] : [`${count} ${inWords[change]}`];
  });
  return `metersync: ${counts.join(', ')}`;
}

/** Describes one alarm in lines for people. */
export function linesOf({
  change,
  alert,
  severity,
  labels,
  means,
  detail,
  todo,
  runbook,
}: AlarmNotice): string[] {
  const of = Object.values(labels).join(' ');
  const head = `${inWords[change]}: ${alert}${of === '' ? '' : ` ${of}`} (${severity}): ${means} ${detail}`;
  if (change === 'resolved') return [head];
  return [head, `  What to do: ${todo.join(' ')}`, `  Runbook: ${runbook}`];
}

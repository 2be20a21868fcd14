import type { AlarmNotice, Notification } from '../../contract/notification.ts';
import { headlineOf, linesOf } from '../../contract/notification-text.ts';
import type { NotifyTarget } from '../../contract/notify-target.ts';
import { notifyPolicy } from '../../contract/retry-policy.ts';

/** One request to a target. */
export interface TargetRequest {
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Signs a body as Standard Webhooks says; returns its headers. */
export type Sign = (id: string, at: Date, body: string) => Readonly<Record<string, string>>;

/**
 * Writes a message as a target wants it. It is the same at each try, but for the time of a signature.
 * Requests of one change have one id, by which the target drops repetitions. Slack has no such id.
 */
export function requestsOf(
  { kind, key = '' }: NotifyTarget,
  message: Notification,
  { sign, now }: { sign: Sign | undefined; now: () => Date },
): readonly TargetRequest[] {
  if (kind === 'slack') return [{ body: JSON.stringify({ text: slackText(message) }) }];
  if (kind === 'alertmanager')
    return [{ body: JSON.stringify(message.alerts.map((notice) => alertmanagerAlert(notice, message.at))) }];
  if (kind === 'pagerduty')
    return message.alerts.flatMap((notice) => pagerDutyEvents(key, notice).map((event) => ({ body: event })));
  const { id, at, alerts } = message;
  const body = JSON.stringify({ type: 'metersync.alerts', timestamp: at, data: { alerts } });
  return [{ body, headers: sign?.(id, now(), body) ?? {} }];
}

const slackText = (message: Notification): string =>
  [headlineOf(message), ...message.alerts.flatMap(linesOf)]
    .join('\n')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');

/**
 * Writes an alarm as Prometheus would send it. What is open ends by itself if no reminder follows; what is
 * over has an end in the past.
 */
function alertmanagerAlert(
  { alert, severity, labels, means, detail, todo, runbook, since, until }: AlarmNotice,
  at: string,
): object {
  const lasts = new Date(Date.parse(at) + 2 * notifyPolicy.remindSeconds * 1_000).toISOString();
  return {
    labels: { alertname: `Metersync${alert}`, severity, ...labels },
    annotations: { summary: means, detail, todo: todo.join(' '), runbook },
    startsAt: since,
    endsAt: until ?? lasts,
  };
}

/** A test is triggered and resolved, so that nothing stays open. */
function pagerDutyEvents(key: string, notice: AlarmNotice): string[] {
  const { change, id, alert, severity, labels, means, detail, counts, todo, runbook } = notice;
  const event = (action: 'trigger' | 'resolve'): string =>
    JSON.stringify({
      routing_key: key,
      event_action: action,
      dedup_key: id,
      ...(action === 'resolve'
        ? {}
        : {
            payload: {
              summary: `metersync ${alert}: ${means} ${detail}`.slice(0, 1_024).toWellFormed(),
              severity: change === 'test' ? 'info' : severity === 'page' ? 'critical' : 'warning',
              source: 'metersync',
              component: alert,
              custom_details: { ...labels, ...counts, detail, todo: todo.join(' '), runbook },
            },
          }),
    });
  if (change === 'test') return [event('trigger'), event('resolve')];
  return [event(change === 'resolved' ? 'resolve' : 'trigger')];
}

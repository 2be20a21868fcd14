import { recordPolicy, serverWaits } from '../contract/retry-policy.ts';
import { formatSeconds } from '../contract/times.ts';
import { eventFindings, judgeLate } from './event-findings.ts';
import { type AlarmType, type FindingType, foundIf, inWarehouse } from './finding-type.ts';
import { runFindings } from './run-findings.ts';
import { prometheusFindings, serverFindings } from './server-findings.ts';

const alarms = { ...serverFindings, ...eventFindings, ...runFindings, ...prometheusFindings } as const;
export type AlarmName = keyof typeof alarms;

/** The findings that become alarms once they have lasted. The Prometheus rules are generated from them. */
export const alarmTypes: Readonly<Record<AlarmName, AlarmType>> = alarms;
export const alarmNames = Object.keys(alarms) as AlarmName[];

/** The alarms that the watch raises. */
export const watchedNames = alarmNames.filter(
  (name) => alarmTypes[name].judge !== undefined && !alarmTypes[name].stopsWatch,
);

export const isAlarmName = (name: string): name is AlarmName => Object.hasOwn(alarms, name);

/**
 * The findings for which somebody has to act within days, in the order of what has to be done: first what keeps
 * data out of the warehouse, then decisions, data that may be wrong, and last what only may become wrong.
 */
const ticketsInOrder: readonly AlarmName[] = [
  'SchemaMismatch',
  'QueueIdle',
  'NotLoaded',
  'Parked',
  'Decide',
  'RunUnwell',
  'AuditDiffers',
  'EventsDead',
  'RecordsRefused',
  'RunStalled',
  'RunOverdue',
  'DeliveriesRefused',
  'ChangesMissed',
  'EventsMissing',
  'ScheduleGone',
  'SchedulePaused',
  'NotificationsFailing',
  'CertificateExpires',
];

/** The place of a finding among findings of the same word; others have the order of the catalogue. */
export const rankOf = (alarm: AlarmName | null): number =>
  alarm === null ? ticketsInOrder.length : ticketsInOrder.indexOf(alarm);

/** Findings that end by themselves and never become alarms. */
const passing = {
  ServersSlow: {
    name: 'servers',
    severity: 'note',
    means: 'A server answers slowly.',
    judge: ({ slow = [] }) =>
      foundIf(slow.length > 0, {
        saw: `${slow.join(' and ')} did not answer within ${formatSeconds(serverWaits.answerMs / 1_000)}, but did when asked again`,
        brief: `${slow.join(' and ')} ${slow.length === 1 ? 'answers' : 'answer'} slowly`,
      }),
    todo: 'Nothing, if it passes. If it lasts, look at the load of the server and of its machine.',
  },
  EventsLate: {
    name: 'events',
    severity: 'note',
    means: 'Events are late.',
    judge: judgeLate(recordPolicy.lagSeconds, recordPolicy.waitMaxSeconds),
    todo: 'Nothing, unless the delay grows.',
  },
  Loading: {
    name: 'first backfill',
    severity: 'note',
    means: 'The first backfill runs.',
    judge: inWarehouse(({ loaded, runs }) =>
      foundIf(!loaded && runs.full.running > 0, { saw: 'the first backfill is running' }),
    ),
    todo: 'Nothing: it ends by itself.',
  },
} as const satisfies Readonly<Record<string, FindingType>>;

/** The catalogue of everything that can be wrong, the worst first. Every status and alarm is a view of it. */
export const findingTypes: Readonly<Record<string, FindingType>> = { ...alarms, ...passing };

/** The link to the runbook of an alarm. */
export const runbookOf = (name: AlarmName): string => `docs/runbooks.md#${name.toLowerCase()}`;

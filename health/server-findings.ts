import { alarmPolicy, notifyPolicy } from '../contract/retry-policy.ts';
import { describeFit, fitOf } from '../contract/schema-versions.ts';
import { formatSeconds, formatTime } from '../contract/times.ts';
import { countedToMax } from '../contract/words.ts';
import {
  type AlarmType,
  answers,
  type Found,
  foundIf,
  increase,
  inTemporal,
  inWarehouse,
  max,
  min,
  nobodyReports,
  noneReady,
  ourIncrease,
  share,
} from './finding-type.ts';
import type { Away, Health } from './measured.ts';

/** A server that cannot be asked is unknown. If both Postgres and Temporal are away, nothing works. */
const unreachable = ({ away, todo, brief }: Away, { warehouse, temporal }: Health): Found => ({
  saw: away,
  todo,
  ...(brief === undefined ? {} : { brief }),
  word: 'away' in warehouse && 'away' in temporal ? 'Broken' : 'Unknown',
});

/** Whether the watch last ran so long ago that it seems to have stopped. */
export const watchIsLate = (lookedSecondsAgo: number | null): boolean =>
  lookedSecondsAgo !== null && lookedSecondsAgo > notifyPolicy.heartbeatMaxSeconds;

/** Whether the schema keeps this code from reading the warehouse. */
const isUnfit = ({ schema }: Health): boolean =>
  schema !== null && ['behind', 'tooNew'].includes(fitOf(schema));

/** Findings about what metersync runs on: Postgres, Temporal, workers and the watch. */
export const serverFindings = {
  WarehouseDown: {
    name: 'warehouse',
    severity: 'page',
    means: 'No worker reaches Postgres, or none can write there.',
    judge: (health) =>
      'away' in health.warehouse && !isUnfit(health)
        ? [{ brief: 'Postgres does not answer', ...unreachable(health.warehouse, health) }]
        : [],
    // The watch stores alarms in the warehouse. HEARTBEAT_URL reports it without Prometheus.
    stopsWatch: true,
    promql: `${max('metersync_warehouse_up')} < 1`,
    forMinutes: 5,
    todo: 'Start Postgres again. Meanwhile events wait in Temporal.',
  },
  TemporalDown: {
    name: 'Temporal',
    severity: 'page',
    means: 'No worker reaches Temporal, so nothing runs.',
    // Without any Temporal no worker runs, which is WorkersGone.
    judge: (health) =>
      'away' in health.temporal && !health.temporal.nothingRuns
        ? [{ brief: 'Temporal does not answer', ...unreachable(health.temporal, health) }]
        : [],
    // The watch runs in Temporal.
    stopsWatch: true,
    promql: `${max('metersync_temporal_up')} < 1`,
    forMinutes: 5,
    todo: 'Start Temporal again. Meanwhile receivers answer 503, and the service repeats its deliveries.',
  },
  WorkersGone: {
    name: 'workers',
    severity: 'page',
    means: 'No worker takes events.',
    judge: ({ temporal }) => {
      if ('away' in temporal)
        return temporal.nothingRuns ? [{ saw: temporal.away, todo: temporal.todo }] : undefined;
      const { idle, absent } = temporal;
      if (absent === null)
        return foundIf(idle.includes('events'), { saw: `no worker is running for ${idle.join(', ')}` });
      return [
        {
          saw: `Temporal gives events to ${absent}, but only workers of other builds poll`,
          todo: 'Use temporal worker deployment set-current-version to promote a build that polls; see WorkersGone in docs/runbooks.md.',
        },
      ];
    },
    promql: noneReady('worker'),
    forMinutes: 5,
    todo: 'Run `metersync start`, or `metersync worker`. Acknowledged events wait in Temporal.',
  },
  QueueIdle: {
    name: 'workers',
    severity: 'ticket',
    means: 'No worker takes work from one of the queues.',
    judge: inTemporal(({ idle, absent }) =>
      foundIf(idle.length > 0 && absent === null && !idle.includes('events'), {
        saw: `no worker is running for ${idle.join(', ')}, so their work waits`,
      }),
    ),
    forMinutes: 15,
    todo: 'Run `metersync start`, or `metersync worker`.',
  },
  WorkflowsStuck: {
    name: 'workflows',
    severity: 'page',
    means: 'Tasks of workflows keep failing, so these workflows do not continue.',
    judge: inTemporal(({ stuckWorkflows }) => {
      const workflows = stuckWorkflows ?? 0;
      return foundIf(workflows > 0, {
        saw: `tasks of ${countedToMax(workflows, 'workflow')} keep failing, so these workflows do not continue`,
        counts: { workflows },
        todo: 'Their failures are on Temporal’s web page and in the log of the workers; see WorkflowsStuck in docs/runbooks.md.',
      });
    }),
    forMinutes: 10,
    todo: 'Fix the cause that the failure names.',
  },
  HeartbeatStopped: {
    name: 'watch',
    severity: 'page',
    means: 'The watch has stopped, so nothing resumes lost work or sends alarms.',
    judge: ({ warehouse, temporal }) => {
      if ('away' in warehouse) return undefined;
      const { lookedSecondsAgo } = warehouse.watch;
      if (!watchIsLate(lookedSecondsAgo)) return [];
      if (!('away' in temporal) && temporal.foundAway)
        return [
          {
            word: 'Catching up',
            brief: 'Postgres was unreachable and answers again',
            saw: 'Postgres was unreachable and answers again; the watch runs within a minute',
            todo: 'Nothing: it ends by itself.',
          },
        ];
      return [
        {
          saw: `the watch last ran ${formatSeconds(lookedSecondsAgo ?? 0)} ago, so no alarms are sent`,
          todo: 'Run metersync start, or metersync worker; see the workflow watch on Temporal’s web page.',
        },
      ];
    },
    // HEARTBEAT_URL reports it without Prometheus.
    stopsWatch: true,
    promql: `time() - ${max('last_over_time(metersync_heartbeat_timestamp_seconds[1d])')} > ${notifyPolicy.heartbeatMaxSeconds} or ${nobodyReports('metersync_heartbeat_timestamp_seconds')}`,
    forMinutes: 2,
    todo: 'Fix the cause, or restart a worker.',
  },
  SchemaMismatch: {
    name: 'schema',
    severity: 'ticket',
    means: 'The schema of the warehouse has another version than the running code.',
    judge: (health) => {
      const { schema, warehouse } = health;
      if (schema === null) return undefined;
      if (schema.known === schema.applied) return [];
      const { saw, todo } = describeFit(schema);
      if (isUnfit(health) && 'away' in warehouse) return [unreachable({ away: saw, todo }, health)];
      return [{ saw, todo }];
    },
    forMinutes: 15,
    todo: 'Run `metersync migrate`, or finish the rollout.',
  },
  NotificationsFailing: {
    name: 'notifications',
    severity: 'ticket',
    means: `NOTIFY_URL has not accepted an alarm for ${formatSeconds(notifyPolicy.unsentMaxSeconds)}.`,
    judge: inWarehouse(({ watch: { unsent } }) =>
      unsent === null || unsent.seconds <= notifyPolicy.unsentMaxSeconds
        ? []
        : [{ saw: `NOTIFY_URL has accepted no alarm for ${formatSeconds(unsent.seconds)}: ${unsent.error}` }],
    ),
    forMinutes: 0,
    todo: 'Correct `NOTIFY_URL` and `NOTIFY_SECRET`, and restart the workers. They then send open alarms, and alarms that closed within the last day.',
  },
  CertificateExpires: {
    name: 'certificate',
    severity: 'ticket',
    means: 'The client certificate for Temporal expires within 14 days.',
    judge: inTemporal(({ certificate }) =>
      certificate === null || certificate.secondsLeft >= alarmPolicy.certificateSeconds
        ? []
        : [{ saw: `the client certificate for Temporal expires ${formatTime(certificate.expiresAt)}` }],
    ),
    forMinutes: 0,
    todo: 'Renew the certificate that the configuration of Temporal names, and restart receivers and workers.',
  },
} as const satisfies Readonly<Record<string, AlarmType>>;

const taskFailures = 'temporal_workflow_task_execution_failed_total';

/** Findings that only Prometheus can make: they are about rates, or about single processes. */
export const prometheusFindings = {
  ReceiverDown: {
    name: 'receiver',
    severity: 'page',
    means: 'No receiver can take deliveries.',
    promql: noneReady('receiver'),
    forMinutes: 5,
    todo: 'Start what is missing. The service repeats deliveries for 27 hours, and disables the endpoint after five days.',
  },
  ReceiverRefusing: {
    name: 'receiver',
    severity: 'page',
    means: 'More than 5 % of answers are 503.',
    promql: `${share(answers, 'code="503"', 5)} > 0.05`,
    forMinutes: 5,
    todo: 'Give Temporal a faster disk, or run another receiver. The service repeats refused deliveries.',
  },
  ClockOff: {
    name: 'clock',
    severity: 'ticket',
    means: 'Deliveries are refused because of their timestamp.',
    promql: `${increase(`${answers}{reason=~"timestamp-old|timestamp-new"}`, 15)} > 10`,
    forMinutes: 5,
    todo: 'Let NTP set the clock. Until then, `WEBHOOK_TOLERANCE_SECONDS` can allow a larger difference.',
  },
  SecretsFileBad: {
    name: 'webhook secrets',
    severity: 'ticket',
    means: 'The file of signing secrets cannot be read. The receiver keeps the secrets that it read before.',
    promql: `${min('metersync_receiver_secrets_valid')} < 1`,
    forMinutes: 5,
    todo: 'Correct `WEBHOOK_SECRETS_FILE` before the service drops the old secret.',
  },
  NonDeterminism: {
    name: 'workflows',
    severity: 'page',
    means: 'A workflow cannot be replayed on the running code.',
    promql: `${ourIncrease(`${taskFailures}{failure_reason="NonDeterminismError"}`, 5)} > 0`,
    forMinutes: 1,
    todo: 'Run only workers of the version on which the workflow ran before. If this happened after an upgrade, report it. A backfill can also be terminated and started again.',
  },
  ServiceFailing: {
    name: 'service',
    severity: 'ticket',
    means: 'More than a fifth of the requests to the service fail.',
    promql: `${share('metersync_service_requests_total', 'result=~"busy|error|unreachable|unreadable"', 15)} > 0.2`,
    forMinutes: 15,
    todo: 'Ask the operator of the service. Meanwhile nothing is given up.',
  },
} as const satisfies Readonly<Record<string, AlarmType>>;

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
    brief: 'Postgres does not answer',
    severity: 'page',
    means: 'No worker reaches Postgres, or none can write there.',
    judge: (health) =>
      'away' in health.warehouse && !isUnfit(health) ? [unreachable(health.warehouse, health)] : [],
    // The watch stores alarms in the warehouse. HEARTBEAT_URL reports it without Prometheus.
    stopsWatch: true,
    promql: `${max('metersync_warehouse_up')} < 1`,
    forMinutes: 5,
    causes: [
      'A full disk, the network, a wrong password of the workers, or too many connections. The log of Postgres says which.',
    ],
    todo: 'Start Postgres again. Meanwhile events wait in Temporal.',
  },
  TemporalDown: {
    name: 'Temporal',
    brief: 'Temporal does not answer',
    severity: 'page',
    means: 'No worker reaches Temporal, so nothing runs.',
    // Without any Temporal no worker runs, which is WorkersGone.
    judge: (health) =>
      'away' in health.temporal && !health.temporal.nothingRuns ? [unreachable(health.temporal, health)] : [],
    // The watch runs in Temporal.
    stopsWatch: true,
    promql: `${max('metersync_temporal_up')} < 1`,
    forMinutes: 5,
    causes: [
      'Temporal or its database is not running. The log of Temporal says why.',
      'The network, or the certificate or key of the workers. `metersync doctor` says which.',
    ],
    todo: 'Start Temporal again. Meanwhile receivers answer 503, and the service repeats its deliveries.',
  },
  WorkersGone: {
    name: 'workers',
    brief: 'no worker takes events',
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
    causes: [
      'No worker process is running.',
      'Workers are running but do not poll. See WorkerDeaf, and check whether they reach Temporal.',
      "`metersync_worker_version_current` is 0: Temporal gives events to another build. Promote the build that is running, [with Temporal's own command](running.md#builds-of-workers).",
    ],
    todo: 'Run `metersync start`, or `metersync worker`. Acknowledged events wait in Temporal.',
    over: '`metersync status` shows running workers.',
  },
  QueueIdle: {
    name: 'workers',
    brief: 'work waits without a worker',
    severity: 'ticket',
    means: 'No worker takes work from one of the queues.',
    judge: inTemporal(({ idle, absent }) =>
      foundIf(idle.length > 0 && absent === null && !idle.includes('events'), {
        saw: `no worker is running for ${idle.join(', ')}, so their work waits`,
      }),
    ),
    forMinutes: 15,
    causes: ['A worker that serves only some queues has ended, or has stopped polling (see WorkerDeaf).'],
    todo: 'Run `metersync start`, or `metersync worker`.',
  },
  WorkflowsStuck: {
    name: 'workflows',
    brief: 'workflows are stuck',
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
    causes: [
      'NonDeterminism is open: the new version changed a workflow.',
      'The failure has a code of docs/reference/failures.md, for example PAYLOAD_REFUSED.',
      'The failure says that a message is too large. This is a defect of metersync: report it.',
      'Temporal’s web page shows the failures of these workflows: filter by `TemporalReportedProblems`.',
    ],
    todo: 'Fix the cause that the failure names.',
  },
  HeartbeatStopped: {
    name: 'watch',
    brief: 'the watch has stopped',
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
    causes: [
      'WorkersGone, WarehouseDown or TemporalDown is open.',
      "The schedule `metersync-watch` is paused or gone on Temporal's web page. A worker creates it again when it starts.",
      'The workflow `watch` fails. Temporal’s web page shows its failure.',
    ],
    todo: 'Fix the cause, or restart a worker.',
  },
  SchemaMismatch: {
    name: 'schema',
    brief: 'the schema has another version',
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
    causes: [
      '`metersync_schema_migrations` shows more known than applied migrations: `metersync migrate` was not run.',
      'It shows more applied than known migrations: an older process is running.',
    ],
    todo: 'Run `metersync migrate`, or finish the rollout.',
  },
  NotificationsFailing: {
    name: 'notifications',
    brief: 'alarms cannot be sent',
    severity: 'ticket',
    means: `NOTIFY_URL has not accepted an alarm for ${formatSeconds(notifyPolicy.unsentMaxSeconds)}.`,
    judge: inWarehouse(({ watch: { unsent } }) =>
      unsent === null || unsent.seconds <= notifyPolicy.unsentMaxSeconds
        ? []
        : [{ saw: `NOTIFY_URL has accepted no alarm for ${formatSeconds(unsent.seconds)}: ${unsent.error}` }],
    ),
    forMinutes: 0,
    causes: [
      '`metersync status` has the last error.',
      'An answer of 4xx points to the address, a key in it, or `NOTIFY_SECRET`. No answer points to the network.',
    ],
    todo: 'Correct `NOTIFY_URL` and `NOTIFY_SECRET`, and restart the workers. They then send open alarms, and alarms that closed within the last day.',
  },
  CertificateExpires: {
    name: 'certificate',
    brief: 'the certificate for Temporal expires soon',
    severity: 'ticket',
    means: 'The client certificate for Temporal expires within 14 days.',
    judge: inTemporal(({ certificate }) =>
      certificate === null || certificate.secondsLeft >= alarmPolicy.certificateSeconds
        ? []
        : [{ saw: `the client certificate for Temporal expires ${formatTime(certificate.expiresAt)}` }],
    ),
    forMinutes: 0,
    causes: ['`metersync_temporal_certificate_expiry_timestamp_seconds` says when.'],
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
    causes: [
      'Nothing answers on the port of the receiver. Its log says why.',
      '`/readyz` of the private port names Temporal. Start Temporal again.',
      'The port answers only on its own machine. Check the proxy and its certificate.',
    ],
    todo: 'Start what is missing. The service repeats deliveries for 27 hours, and disables the endpoint after five days.',
    over: '`metersync doctor` sends a signed probe.',
  },
  ReceiverRefusing: {
    name: 'receiver',
    severity: 'page',
    means: 'More than 5 % of answers are 503.',
    promql: `${share(answers, 'code="503"', 5)} > 0.05`,
    forMinutes: 5,
    causes: [
      'Temporal is slow: `metersync_receiver_group_start_duration_seconds` has grown.',
      'More deliveries arrive than Temporal takes: `metersync_receiver_answers_total{reason="busy"}` grows.',
      'metersync has a defect: the same metric grows with `reason="failed"`, and the log says more.',
    ],
    todo: 'Give Temporal a faster disk, or run another receiver. The service repeats refused deliveries.',
  },
  ClockOff: {
    name: 'clock',
    severity: 'ticket',
    means: 'Deliveries are refused because of their timestamp.',
    promql: `${increase(`${answers}{reason=~"timestamp-old|timestamp-new"}`, 15)} > 10`,
    forMinutes: 5,
    causes: ['`metersync doctor` compares the clocks.'],
    todo: 'Let NTP set the clock. Until then, `WEBHOOK_TOLERANCE_SECONDS` can allow a larger difference.',
  },
  SecretsFileBad: {
    name: 'webhook secrets',
    severity: 'ticket',
    means: 'The file of signing secrets cannot be read. The receiver keeps the secrets that it read before.',
    promql: `${min('metersync_receiver_secrets_valid')} < 1`,
    forMinutes: 5,
    causes: ['The log line `webhook secrets not read` says why.'],
    todo: 'Correct `WEBHOOK_SECRETS_FILE` before the service drops the old secret.',
    over: 'The log says `webhook secrets read again`.',
  },
  WorkerDeaf: {
    name: 'workers',
    severity: 'ticket',
    means: 'A worker has stopped polling. Its liveness check should restart it.',
    promql: `${min('metersync_worker_polling', 'task_queue')} < 1`,
    forMinutes: 5,
    causes: [
      'If the alarm stays open, `metersync healthcheck` may not be the liveness check of the worker.',
      'If the alarm returns, the cause is the network to Temporal, or a defect of the SDK.',
    ],
    todo: 'Restart the worker, and keep its log of the ten minutes before.',
    over: '`metersync healthcheck` ends with status 0.',
  },
  NonDeterminism: {
    name: 'workflows',
    severity: 'page',
    means: 'A workflow cannot be replayed on the running code.',
    promql: `${ourIncrease(`${taskFailures}{failure_reason="NonDeterminismError"}`, 5)} > 0`,
    forMinutes: 1,
    causes: [
      'The new version changed a workflow without a patch.',
      'Workers of an older version took the workflow over.',
    ],
    todo: 'Run only workers of the version on which the workflow ran before. If this happened after an upgrade, report it. A backfill can also be terminated and started again.',
  },
  ServiceFailing: {
    name: 'service',
    severity: 'ticket',
    means: 'More than a fifth of the requests to the service fail.',
    promql: `${share('metersync_service_requests_total', 'result=~"busy|error|unreachable|unreadable"', 15)} > 0.2`,
    forMinutes: 15,
    causes: [
      'Result `busy`: the service answers 429. Lower `SERVICE_MAX_CONCURRENCY`.',
      'Result `error` or `unreachable`: the service, or the network to it, fails.',
      'Result `unreadable`: an answer does not have the form that the endpoint catalogue describes.',
    ],
    todo: 'Ask the operator of the service. Meanwhile nothing is given up.',
  },
} as const satisfies Readonly<Record<string, AlarmType>>;

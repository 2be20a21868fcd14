import type { AlarmType } from './finding-type.ts';
import { increase, max, min, noneReady, ourIncrease, share } from './promql.ts';

const answers = 'metersync_receiver_answers_total';
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
  ScheduleMissed: {
    name: 'schedule',
    severity: 'ticket',
    means: 'Starts of a schedule were skipped because Temporal was down for too long.',
    promql: `${max('increase(metersync_schedule_missed_total[1d])', 'schedule')} > 0`,
    // Temporal says how many it ever skipped, and not when. RunOverdue reports what follows.
    forMinutes: 0,
    causes: ['`metersync schedule show` says how many starts were skipped.'],
    todo: 'If the next start is far off, [start a run now](guides/running.md#schedules).',
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

import { type FailureCode, failureTypes } from './failures.ts';
import { describeDue } from './late-work.ts';
import { alarmPolicy, notifyPolicy, recordPolicy } from './retry-policy.ts';
import { describeFit } from './schema-versions.ts';
import { formatSeconds, formatTime } from './times.ts';
import {
  expires,
  type Health,
  isQuiet,
  overdueRuns,
  stalledRuns,
  type TemporalHealth,
  type WarehouseHealth,
} from './verdict.ts';
import { countedToMax, eventsGivenUp } from './words.ts';

/** An alarm that is raised. */
export interface Raised {
  /** What tells it apart from others of its name, as the rule's labels do. */
  readonly labels: Readonly<Record<string, string>>;
  /** What is seen, in a few words. */
  readonly detail: string;
  readonly counts?: Readonly<Record<string, number>>;
  /** What to do, where that depends on what is seen. */
  readonly todo?: string;
}

/**
 * The catalogue of alarms. deploy/prometheus/rules.yml and docs/runbooks.md are made from it.
 * `page`: somebody has to act now. `ticket`: somebody has to act within days.
 */
export interface AlertType {
  readonly severity: 'page' | 'ticket';
  /** What has happened, in one sentence. */
  readonly means: string;
  /** When it has, as PromQL over the metrics of contract/metrics.ts and Temporal's own. */
  readonly promql: string;
  /**
   * The same over a deployment's health, for the watch of each minute; undefined while what it asks about is
   * away. Without it Prometheus alone can raise the alarm: it is about rates, or about single processes.
   */
  readonly judge?: (health: Health) => readonly Raised[] | undefined;
  /** How many minutes it has to last. */
  readonly forMinutes: number;
  /** The causes, each with what shows it. */
  readonly causes: readonly string[];
  readonly act: readonly string[];
  /** How to see that it is over; undefined where the alarm's own condition says it. */
  readonly verify?: string;
}

/** What tells deployments of one Prometheus apart. */
const deployment = ['job', 'namespace'] as const;

/** Aggregates series of a deployment, by labels that tell its facts apart. */
const each = (how: 'max' | 'min' | 'sum' | 'count', series: string, ...labels: readonly string[]): string =>
  `${how} by (${[...deployment, ...labels].join(', ')}) (${series})`;

/** Share of a counter's increase that has some labels; nothing while there is none at all. */
const share = (name: string, labels: string, minutes: number): string =>
  `${increase(`${name}{${labels}}`, minutes)} / (${increase(name, minutes)} > 0)`;

const increase = (series: string, minutes: number): string => each('sum', `increase(${series}[${minutes}m])`);

/** Whether nobody has reported a series for a day. Until then the alarm names the deployment. */
const absent = (series: string): string => `absent_over_time(${series}[1d])`;

/** Whether no process of a part is ready. One that is gone counts for a day: then only others may be left. */
const noneReady = (part: string): string => {
  const series = `metersync_ready{part="${part}"}`;
  return `${each('max', `${series} or 0 * last_over_time(${series}[1d])`)} < 1 or ${absent(series)}`;
};

/** Series of Node's or Temporal's names, which other programs of a Prometheus have, too: of our processes alone. */
const ofOurs = (series: string): string =>
  `${series} and on (${deployment.join(', ')}, instance) metersync_build_info`;
const ourIncrease = (series: string, minutes: number): string =>
  each('sum', ofOurs(`increase(${series}[${minutes}m])`));

const inWarehouse =
  (judge: (warehouse: WarehouseHealth) => readonly Raised[]) =>
  ({ warehouse }: Health): readonly Raised[] | undefined =>
    'away' in warehouse ? undefined : judge(warehouse);

const inTemporal =
  (judge: (temporal: TemporalHealth) => readonly Raised[]) =>
  ({ temporal }: Health): readonly Raised[] | undefined =>
    'away' in temporal ? undefined : judge(temporal);

const raisedIf = (condition: boolean, raised: Omit<Raised, 'labels'>): readonly Raised[] =>
  condition ? [{ labels: {}, ...raised }] : [];

/** Failures that keep everything from being read have alarms of their own. */
const ofAll: readonly FailureCode[] = ['SERVICE_KEY_REFUSED', 'SERVICE_OUTAGE'];
const todoOf = (code: FailureCode): string => failureTypes[code].operator;

const judgeParked = (code: FailureCode) =>
  inWarehouse(({ parked }) =>
    raisedIf(
      parked.some((one) => one.code === code),
      { detail: failureTypes[code].means, todo: todoOf(code) },
    ),
  );

const answers = 'metersync_receiver_answers_total';
const taskFailures = 'temporal_workflow_task_execution_failed_total';

export const alertTypes = {
  ReceiverDown: {
    severity: 'page',
    means: 'No receiver can take deliveries.',
    promql: noneReady('receiver'),
    forMinutes: 5,
    causes: [
      'Nothing answers on its port: its log says why.',
      '`/readyz` of the private port names Temporal: bring it up.',
      'The port answers here alone: the proxy or its certificate.',
    ],
    act: [
      'Start what is missing.',
      'The service delivers again for 27 hours, and disables the endpoint after five days.',
    ],
    verify: '`metersync doctor` sends a signed probe.',
  },
  ReceiverRefusing: {
    severity: 'page',
    means: 'More than 5 % of answers are 503.',
    promql: `${share(answers, 'code="503"', 5)} > 0.05`,
    forMinutes: 5,
    causes: [
      '`metersync_receiver_group_start_duration_seconds` has grown: Temporal is slow.',
      '`metersync_receiver_answers_total{reason="busy"}` grows: more come than Temporal takes.',
      '`reason="failed"` grows: a defect; see the log.',
    ],
    act: ['Give Temporal a faster disk, or run another receiver. Refused deliveries come again.'],
  },
  SignaturesRefused: {
    severity: 'page',
    means: 'Deliveries come, and no signature is right.',
    promql: `${increase(`${answers}{code="401"}`, 15)} > 20 unless ${increase(`${answers}{reason="durable"}`, 15)} > 0`,
    forMinutes: 5,
    causes: [
      '`reason="signature-wrong"`: another secret, or a proxy that rewrites bodies.',
      '`reason="headers-missing"`: a stranger, or a proxy that drops headers.',
      '`reason="timestamp-old"` or `timestamp-new`: the clock; see ClockOff.',
    ],
    act: [
      "Compare the secret with the endpoint's in the service's portal; have the proxy pass bodies on unchanged.",
    ],
    verify: '`metersync events list` shows new events.',
  },
  ClockOff: {
    severity: 'ticket',
    means: 'Deliveries are refused because of their time.',
    promql: `${increase(`${answers}{reason=~"timestamp-old|timestamp-new"}`, 15)} > 10`,
    forMinutes: 5,
    causes: ['`metersync doctor` compares the clocks.'],
    act: ['Let NTP set the clock. `WEBHOOK_TOLERANCE_SECONDS` allows a larger difference meanwhile.'],
  },
  SecretsFileBad: {
    severity: 'ticket',
    means: 'The file of signing secrets cannot be read; the former secrets hold.',
    promql: `${each('min', 'metersync_receiver_secrets_valid')} < 1`,
    forMinutes: 5,
    causes: ['The log says why: `webhook secrets not read`.'],
    act: ['Correct `WEBHOOK_SECRETS_FILE` before the service drops the old secret.'],
    verify: 'The log says `webhook secrets read again`.',
  },
  Silent: {
    severity: 'page',
    means: 'No event came for longer than SILENCE_HOURS.',
    promql: `${each('max', 'metersync_event_last_received_seconds')} > (${each('max', 'metersync_silence_limit_seconds')} > 0)`,
    judge: inWarehouse(({ silence, silenceHours }) =>
      raisedIf(isQuiet(silence, silenceHours), {
        detail: `no event for ${formatSeconds(silence.quietSeconds ?? 0)}`,
      }),
    ),
    forMinutes: 15,
    causes: [
      'The portal disabled the endpoint after five days of failures.',
      'Webhooks are off: `metersync doctor`.',
      'The service is quiet: `metersync audit --since 7d` finds no difference.',
    ],
    act: ['Enable the endpoint (`metersync webhooks portal`) and recover there what failed.'],
    verify: '`metersync events list` shows new events.',
  },
  ChangesMissed: {
    severity: 'ticket',
    means: 'Runs found changes that no event reported.',
    promql: `${each('max', 'metersync_missed_rows')} > 0`,
    judge: inWarehouse(({ silence: { missedRows, missedCompanies } }) =>
      raisedIf(missedRows > 0, {
        detail: `${countedToMax(missedRows, 'change')} in ${countedToMax(missedCompanies, 'company', 'companies')}`,
        counts: { rows: missedRows, companies: missedCompanies },
      }),
    ),
    forMinutes: 0,
    causes: [
      'No event came at all: see Silent.',
      'Some were refused: `metersync_receiver_answers_total`.',
      'The service never sent them: its portal lists no delivery.',
    ],
    act: ['The run repaired the data. Find out why no event came.'],
    verify: 'It ends a day after the last such change.',
  },
  EventsStalled: {
    severity: 'page',
    means: 'Events wait for 15 minutes to be recorded, or records to be read.',
    promql: `${each('max', 'metersync_events_oldest_due_seconds')} > ${recordPolicy.waitMaxSeconds} or ${each('max', 'metersync_temporal_stalled_groups')} > 0`,
    judge: ({ warehouse, temporal }) => {
      const groups = 'away' in temporal ? 0 : temporal.stalledGroups;
      if (!('away' in warehouse)) {
        const dueSeconds = warehouse.oldestDueSeconds ?? 0;
        if (dueSeconds > recordPolicy.waitMaxSeconds)
          return [{ labels: {}, detail: describeDue(warehouse, dueSeconds) }];
      }
      if (groups > 0)
        return [{ labels: {}, detail: `${countedToMax(groups, 'group')} of events wait to be recorded` }];
      return 'away' in warehouse || 'away' in temporal ? undefined : [];
    },
    forMinutes: 5,
    causes: [
      'WorkersGone or WorkerDeaf is open.',
      'ServiceFailing is open.',
      '`metersync_warehouse_pool_connections{state="waiting"}` is above 0: Postgres is slow or locked.',
    ],
    act: ['Mend the cause.'],
  },
  KeyRefused: {
    severity: 'page',
    means: 'The service refuses the API key: nothing is read.',
    promql: `${each('count', 'metersync_parked_events{code="SERVICE_KEY_REFUSED"}')} > 0`,
    judge: judgeParked('SERVICE_KEY_REFUSED'),
    forMinutes: 5,
    causes: ['`metersync doctor` says whether the key or its environment is wrong.'],
    act: ['Set `SERVICE_API_KEY`, restart the workers, run `metersync resume`.'],
  },
  ServiceDown: {
    severity: 'page',
    means: 'The service fails every request: nothing is read.',
    promql: `${each('count', 'metersync_parked_events{code="SERVICE_OUTAGE"}')} > 0`,
    judge: judgeParked('SERVICE_OUTAGE'),
    forMinutes: 5,
    causes: [
      '`metersync doctor` says what it answers.',
      'Others reach it: the network, the proxy or the name server of the workers.',
    ],
    act: ['Ask the service. Nothing is given up meanwhile.'],
  },
  Parked: {
    severity: 'ticket',
    means: 'Work is parked until somebody acts.',
    promql: `${each('count', `metersync_parked_events{code!~"${ofAll.join('|')}"}`, 'code')} > 0`,
    judge: inWarehouse(({ parked }) =>
      parked
        .filter(({ code }) => !ofAll.includes(code))
        .map(({ code, events, parts }) => ({
          labels: { code },
          detail: `${countedToMax(events, 'event')} and ${countedToMax(parts, 'part')} of backfills`,
          counts: { events, parts },
          todo: todoOf(code),
        })),
    ),
    forMinutes: 10,
    causes: ['`metersync status` says which failure, and what to do.'],
    act: ['Do what it says, then run `metersync resume --code CODE`.'],
  },
  EventsDead: {
    severity: 'ticket',
    means: 'Events cannot be applied.',
    promql: `${each('max', 'metersync_events_unsettled{outcome="dead"}')} > 0`,
    judge: inWarehouse(({ dead }) =>
      raisedIf(dead > 0, { detail: eventsGivenUp(dead), counts: { events: dead } }),
    ),
    forMinutes: 0,
    causes: ['`metersync events list --outcome dead` shows each with its reason.'],
    act: [
      'Mend the cause, then run `metersync events replay --outcome dead`. What nobody can mend: `metersync events ignore`.',
    ],
  },
  EventsMissing: {
    severity: 'ticket',
    means: 'The service does not list what events of the last day named.',
    promql: `${each('max', 'metersync_events_unsettled{outcome="missing"}')} > 0`,
    judge: inWarehouse(({ missingLately: missing }) =>
      raisedIf(missing > 0, { detail: eventsGivenUp(missing), counts: { events: missing } }),
    ),
    // The event of a deletion, which settles them, may be late: the service's fourth try comes after 35 minutes.
    forMinutes: 60,
    causes: ['`metersync events list --outcome missing` names the records.'],
    act: ['Ask the service about them. A backfill that finds them settles their events.'],
  },
  HeartbeatStopped: {
    severity: 'page',
    means: 'The watch has stopped: nobody wakes lost work or sends alarms.',
    promql: `time() - ${each('max', 'last_over_time(metersync_heartbeat_timestamp_seconds[1d])')} > ${notifyPolicy.heartbeatMaxSeconds} or ${absent('metersync_heartbeat_timestamp_seconds')}`,
    // The watch cannot see its own end. HEARTBEAT_URL reports it without Prometheus.
    forMinutes: 2,
    causes: [
      'WorkersGone or WarehouseDown is open.',
      "The schedule `metersync-watch` is paused or gone on Temporal's web page. A worker that starts makes it anew.",
      'The workflow `watch` fails: its failure is shown there.',
    ],
    act: ['Mend the cause, or restart a worker.'],
    verify: '`metersync alerts list` says when the watch last ran.',
  },
  NotificationsFailing: {
    severity: 'ticket',
    means: `NOTIFY_URL has not taken an alarm for ${formatSeconds(notifyPolicy.unsentMaxSeconds)}.`,
    promql: `${each('max', 'metersync_notifications_waiting_seconds')} > ${notifyPolicy.unsentMaxSeconds}`,
    judge: inWarehouse(({ watch: { unsent } }) =>
      raisedIf(unsent !== null && unsent.seconds > notifyPolicy.unsentMaxSeconds, {
        detail: unsent?.error ?? '',
      }),
    ),
    forMinutes: 0,
    causes: [
      '`metersync alerts list` has the last error.',
      '4xx: its address, key or `NOTIFY_SECRET`. No answer: the network.',
    ],
    act: [
      'Correct `NOTIFY_URL` and restart the workers. Open alarms are sent then, and those that closed within a day.',
    ],
    verify: '`metersync alerts list` says when each alarm was sent.',
  },
  WorkersGone: {
    severity: 'page',
    means: 'No worker gets events.',
    promql: `${each('max', 'metersync_temporal_queue_polled{task_queue="metersync-events"}')} < 1 or ${each('max', 'metersync_worker_version_current')} < 1 or ${noneReady('worker')}`,
    judge: inTemporal(({ idle, absent }) =>
      raisedIf(idle.includes('events') || absent !== null, {
        detail:
          absent === null
            ? `no worker for ${idle.join(', ')}`
            : `Temporal gives events to ${absent}, and workers of others poll`,
      }),
    ),
    forMinutes: 5,
    causes: [
      'No worker process runs.',
      'They run and do not poll: see WorkerDeaf, and whether they reach Temporal.',
      '`metersync_worker_version_current` is 0: Temporal gives events to another build.',
    ],
    act: [
      'Start workers. Acknowledged events wait in Temporal.',
      'Promote the build that runs, [as below](#builds-of-workers).',
    ],
    verify: '`metersync status` finds the workers well.',
  },
  WorkerDeaf: {
    severity: 'ticket',
    means: 'A worker stopped polling; its liveness check has it restarted.',
    promql: `${each('min', 'metersync_worker_polling', 'task_queue')} < 1`,
    forMinutes: 5,
    causes: [
      'It lasts: is `metersync healthcheck` its liveness check?',
      'It returns: the network to Temporal, or a defect of the SDK.',
    ],
    act: ['Restart it, and keep its log of the ten minutes before.'],
    verify: '`metersync healthcheck` ends with 0.',
  },
  NonDeterminism: {
    severity: 'page',
    means: 'A workflow does not replay on the code that runs.',
    promql: `${ourIncrease(`${taskFailures}{failure_reason="NonDeterminismError"}`, 5)} > 0`,
    forMinutes: 1,
    causes: ['The new version changed a workflow without a patch.', 'Workers of an older one took it over.'],
    act: [
      'Run only workers of the version it ran on before; after an upgrade, report it.',
      'Or terminate a backfill, and start another.',
    ],
  },
  WorkflowsStuck: {
    severity: 'page',
    means: 'Tasks of workflows keep failing: their work stands still.',
    promql: `${each('max', 'metersync_temporal_stuck_workflows')} > 0`,
    judge: inTemporal(({ stuckWorkflows }) => {
      const stuck = stuckWorkflows ?? 0;
      return raisedIf(stuck > 0, { detail: countedToMax(stuck, 'workflow'), counts: { workflows: stuck } });
    }),
    forMinutes: 10,
    causes: [
      'NonDeterminism or TooLarge is open.',
      'Temporal’s web page lists them by `TemporalReportedProblems`, with their failures.',
    ],
    act: ['Mend what the failure names.'],
  },
  TooLarge: {
    severity: 'page',
    means: 'A workflow sent Temporal more than it takes.',
    promql: `${ourIncrease(`${taskFailures}{failure_reason="GrpcMessageTooLarge"}`, 5)} > 0`,
    forMinutes: 1,
    causes: ['It is a defect of metersync: groups and results are bounded.'],
    act: ['Report it with the workflow’s id from the log. Events stay in Temporal.'],
  },
  SlowPickUp: {
    severity: 'ticket',
    means: 'Groups of events wait longer than 5 s for a worker.',
    promql: `histogram_quantile(0.99, ${each('sum', 'rate(temporal_workflow_task_schedule_to_start_latency_seconds_bucket{task_queue="metersync-events"}[5m])', 'le')}) > 5`,
    forMinutes: 5,
    causes: ['All slots are taken (`temporal_worker_task_slots_available`), or Temporal is slow.'],
    act: ['Run another worker.'],
  },
  SlotsFull: {
    severity: 'ticket',
    means: 'All slots of the workers for events are taken.',
    promql: `${each('max', 'temporal_worker_task_slots_available{task_queue="metersync-events"}', 'worker_type')} < 1`,
    forMinutes: 10,
    causes: [
      'Activities are slow: `metersync_warehouse_pool_connections{state="waiting"}`, or ServiceFailing.',
      'They are not: more comes than the workers take.',
    ],
    act: ['Mend what is slow, or run another worker.'],
  },
  StartsThrottled: {
    severity: 'page',
    means: 'Temporal refuses starts of workflows: a limit of its namespace.',
    promql: `${ourIncrease('temporal_request_failure_total{status_code="RESOURCE_EXHAUSTED",operation=~"StartWorkflowExecution|SignalWithStartWorkflowExecution"}', 5)} > 0`,
    forMinutes: 5,
    causes: ["The namespace's requests a second, or its size of history."],
    act: ['Have the limit raised.'],
  },
  WarehouseDown: {
    severity: 'page',
    means: 'No worker reaches Postgres, or none can write there.',
    promql: `${each('max', 'metersync_warehouse_up')} < 1`,
    // With a schema that does not fit it was reached.
    judge: ({ warehouse, schema }) =>
      'away' in warehouse && schema === null
        ? [{ labels: {}, detail: warehouse.away, todo: warehouse.todo }]
        : [],
    forMinutes: 5,
    causes: ['A full disk, the network, the password of the workers, too many connections; see its log.'],
    act: ['Bring it up. Events wait in Temporal meanwhile.'],
  },
  SchemaMismatch: {
    severity: 'ticket',
    means: 'The schema of the warehouse is not that of the code that runs.',
    promql: `${each('count', 'metersync_schema_migrations{side="known"} != ignoring (side) metersync_schema_migrations{side="applied"}')} > 0`,
    judge: ({ schema }) =>
      schema === null
        ? undefined
        : raisedIf(schema.known !== schema.applied, {
            detail: `${countedToMax(schema.known, 'migration')} known, ${schema.applied} applied: ${describeFit(schema).saw}`,
          }),
    forMinutes: 15,
    causes: [
      'More are known than applied: `metersync migrate` was not run.',
      'More are applied than known: an older process runs.',
    ],
    act: ['Run `metersync migrate`, or finish the rollout.'],
  },
  RunUnwell: {
    severity: 'ticket',
    means: 'The last run of a kind did not read everything.',
    promql: `${each('max', 'metersync_run_last_end_timestamp_seconds{state!="complete"}', 'kind', 'state')} > 0`,
    judge: inWarehouse(({ runs }) =>
      Object.entries(runs).flatMap(([kind, { last }]) =>
        last === null || last.state === 'complete'
          ? []
          : [
              {
                labels: { kind, state: last.state },
                detail: `run ${last.runId} ended ${formatTime(last.finishedAt)}${last.error === null ? '' : `: ${last.error}`}`,
              },
            ],
      ),
    ),
    forMinutes: 0,
    causes: ['`metersync backfill --run ID` shows the error of each part.'],
    act: [
      'partial, failed: mend the cause, then `metersync backfill all` or `--companies-file FILE`.',
      'suspect: the listing moved, went back or was empty. Run it again when quiet; see `metersync deletes list`.',
    ],
  },
  RunOverdue: {
    severity: 'ticket',
    means: 'No run of a kind completed for one and a half intervals of its schedule.',
    promql: `${each('max', 'metersync_run_last_complete_age_seconds', 'kind')} > ${alarmPolicy.runOverdueIntervals} * ${each('max', 'metersync_run_interval_seconds', 'kind')}`,
    judge: ({ warehouse, temporal }) =>
      'away' in warehouse || 'away' in temporal
        ? undefined
        : overdueRuns({ warehouse, temporal }).map(({ kind, secondsAgo }) => ({
            labels: { kind },
            detail: `the last was ${formatSeconds(secondsAgo)} ago`,
          })),
    forMinutes: 10,
    causes: [
      'RunUnwell is open: runs end incomplete.',
      'One runs for long: `metersync status`.',
      'None begins: `metersync schedule show`.',
    ],
    act: [
      'Fix the cause. `metersync backfill all` reads everything now; `temporal schedule trigger` starts a reconcile, [as below](#schedules).',
    ],
  },
  RunStalled: {
    severity: 'ticket',
    means: 'A run has stored nothing for half an hour.',
    promql: `${each('max', 'metersync_run_progress_age_seconds', 'kind')} > ${alarmPolicy.runStalledSeconds}`,
    judge: inWarehouse((warehouse) =>
      stalledRuns(warehouse).map(({ kind, run }) => ({
        labels: { kind },
        detail: `run ${run.runId} stored its last page ${formatSeconds(run.progressSecondsAgo)} ago`,
      })),
    ),
    forMinutes: 0,
    causes: [
      '`metersync backfill --run ID` shows the company that it reads.',
      '`metersync_service_requests_total{result="busy"}` grows: the service asks to wait.',
      'No worker takes backfills: `metersync status`.',
    ],
    act: ['Mend the cause; the run goes on from its cursor.'],
  },
  SchedulePaused: {
    severity: 'ticket',
    means: 'A schedule is paused for a day.',
    promql: `${each('max', 'metersync_schedule_paused', 'schedule')} > 0`,
    judge: inTemporal(({ schedules }) =>
      schedules
        .filter(({ state }) => state === 'paused')
        .map(({ name, reason }) => ({ labels: { schedule: name }, detail: reason ?? 'without a reason' })),
    ),
    forMinutes: 1_440,
    causes: ['`metersync schedule show` has the reason.'],
    act: ['Run `metersync schedule resume`, or set `BACKFILL_CRON` or `RECONCILE_EVERY` to `none`.'],
  },
  ScheduleMissed: {
    severity: 'ticket',
    means: 'Starts of a schedule were skipped: Temporal was away for too long.',
    promql: `${each('max', 'increase(metersync_schedule_missed_total[1d])', 'schedule')} > 0`,
    // Temporal says how many it ever skipped, and not when. RunOverdue reports what follows.
    forMinutes: 0,
    causes: ['`metersync schedule show` has the number.'],
    act: ['If the next start is far off, start a run now, [as below](#schedules).'],
  },
  Decide: {
    severity: 'ticket',
    means: 'Deletions of records or readings, or records that Postgres refuses, wait for somebody.',
    promql: `${each('max', 'metersync_deletes_waiting')} > 0 or ${each('max', 'metersync_rejected_records')} > 0`,
    judge: inWarehouse(({ undecidedDeletes: deletes, rejectedRecords: records }) =>
      raisedIf(deletes > 0 || records > 0, {
        detail: `${countedToMax(deletes, 'deletion')} and ${countedToMax(records, 'refused record')}`,
        counts: { deletes, records },
      }),
    ),
    forMinutes: 60,
    causes: [
      '`metersync deletes list`: records, and readings as ranges of a meter, gone from the service at once, which nothing explains yet.',
      '`metersync.rejected_records`: what could not be stored, and why.',
    ],
    act: [
      '`metersync deletes approve` or `reject`; rows that a later read or event explains leave the list by themselves. Ask the service to correct the records.',
    ],
  },
  ServiceFailing: {
    severity: 'ticket',
    means: 'More than a fifth of the requests to the service fail.',
    promql: `${share('metersync_service_requests_total', 'result=~"busy|error|unreachable|unreadable"', 15)} > 0.2`,
    forMinutes: 15,
    causes: [
      '`result="busy"`: 429; lower `SERVICE_MAX_CONCURRENCY`.',
      '`error`, `unreachable`: the service or the network to it.',
      '`unreadable`: an answer is not what the catalogue says.',
    ],
    act: ['Ask the service. Nothing is given up meanwhile.'],
  },
  CertificateExpires: {
    severity: 'ticket',
    means: 'The client certificate for Temporal ends within 14 days.',
    promql: `${each('min', 'metersync_temporal_certificate_expiry_timestamp_seconds')} - time() < ${alarmPolicy.certificateSeconds}`,
    judge: inTemporal(({ certificate }) =>
      expires(certificate) ? [{ labels: {}, detail: `it expires ${formatTime(certificate.expiresAt)}` }] : [],
    ),
    forMinutes: 0,
    causes: ['`metersync_temporal_certificate_expiry_timestamp_seconds` says when.'],
    act: ['Renew it, and restart receivers and workers.'],
  },
  PoolWaiting: {
    severity: 'ticket',
    means: 'Work waits for a connection to Postgres.',
    promql: `${each('max', 'metersync_warehouse_pool_connections{state="waiting"}')} > 0`,
    forMinutes: 10,
    causes: [
      '`pg_stat_activity` shows a lock: end the session that holds it.',
      'No lock: Postgres is slow; see its disk and processor.',
    ],
    act: ['Mend what is slow: more workers would wait, too.'],
  },
  EventLoopSlow: {
    severity: 'ticket',
    means: 'A process computes for over half a second at once.',
    promql: `${each('max', ofOurs('nodejs_eventloop_lag_p99_seconds'))} > 0.5`,
    forMinutes: 10,
    causes: ['The processor is busy.', '`nodejs_heap_size_used_bytes` is near the limit: memory.'],
    act: ['Give it more processor or memory, or run another.'],
  },
} as const satisfies Readonly<Record<string, AlertType>>;

export type AlertName = keyof typeof alertTypes;

export const alertNames = Object.keys(alertTypes) as AlertName[];

export const isAlertName = (name: string): name is AlertName => Object.hasOwn(alertTypes, name);

/** The alarms that report a finding of the verdict, by its name; and why there is none, where that is so. */
export const alarmsOfFindings: Readonly<
  Record<string, { readonly alarms: readonly AlertName[]; readonly silent?: string }>
> = {
  Temporal: { alarms: ['HeartbeatStopped'] },
  warehouse: { alarms: ['WarehouseDown', 'SchemaMismatch'] },
  workers: {
    alarms: ['WorkersGone'],
    silent:
      'Without workers for backfills or checks RunOverdue or RunStalled follows; without any that look, HeartbeatStopped.',
  },
  workflows: { alarms: ['WorkflowsStuck'] },
  certificate: { alarms: ['CertificateExpires'] },
  'schedule full': { alarms: ['SchedulePaused'] },
  'schedule reconcile': { alarms: ['SchedulePaused'] },
  'first backfill': { alarms: [], silent: 'Somebody is just setting it up.' },
  'last backfill': { alarms: ['RunUnwell'] },
  'last reconcile': { alarms: ['RunUnwell'] },
  'backfill under way': { alarms: ['RunStalled'] },
  'reconcile under way': { alarms: ['RunStalled'] },
  'next backfill': { alarms: ['RunOverdue'] },
  'next reconcile': { alarms: ['RunOverdue'] },
  groups: { alarms: ['EventsStalled'] },
  events: { alarms: ['EventsStalled'] },
  service: { alarms: ['ServiceDown'] },
  parked: { alarms: ['KeyRefused', 'Parked'] },
  'dead events': { alarms: ['EventsDead'] },
  'missing events': { alarms: ['EventsMissing'] },
  deletes: { alarms: ['Decide'] },
  'refused records': { alarms: ['Decide'] },
  'blocked views': { alarms: [], silent: 'The tables have the values that the views lack.' },
  silence: { alarms: ['Silent', 'ChangesMissed'] },
  watch: { alarms: ['HeartbeatStopped'] },
  notifications: { alarms: ['NotificationsFailing'] },
};

/** Where the runbook of an alarm stands. */
export const runbookOf = (name: AlertName): string => `docs/runbooks.md#${name.toLowerCase()}`;

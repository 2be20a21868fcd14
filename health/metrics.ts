import { taskQueues } from '../contract/names.ts';
import { rfc3339 } from '../contract/times.ts';
import { verdictWords } from './finding-type.ts';
import { alarmTypes, watchedNames } from './findings.ts';
import {
  type Health,
  type KindOfRuns,
  pendingStates,
  type TemporalHealth,
  type WarehouseHealth,
} from './measured.ts';
import { verdictOf } from './verdict.ts';

/**
 * The catalogue of metrics of `/metrics`, in addition to Node's and Temporal's, and the source of
 * docs/reference/metrics.md. No label holds the id of a company, a record or a person.
 */
export interface MetricType {
  /** What it describes. Every worker reports the warehouse and Temporal, so queries use `max by`. */
  readonly of: 'process' | 'receiver' | 'worker' | 'warehouse' | 'temporal';
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Each label, with a description of its values. */
  readonly labels: Labels;
  /** Upper bounds of a histogram's buckets. */
  readonly buckets?: readonly number[];
}

type Labels = Readonly<Record<string, string>>;
type NoLabels = Readonly<Record<never, string>>;

/** Makes the type of a metric of one kind, which a part of a process measures. */
const made =
  <T extends MetricType['type']>(type: T) =>
  <const L extends Labels = NoLabels>(
    of: MetricType['of'],
    help: string,
    labels?: L,
    buckets?: readonly number[],
  ) => ({ of, type, help, labels: labels ?? ({} as L), ...(buckets && { buckets }) });
const gauge = made('gauge');
const counter = made('counter');
const histogram = made('histogram');

/** One value of a metric with these labels. */
type SampleOf<L> = { readonly value: number } & Readonly<Record<keyof L & string, string>>;

/** Makes the type of a gauge that is read from the measurements of a deployment. */
const measured = <const L extends Labels>(
  of: 'warehouse' | 'temporal',
  help: string,
  labels: L,
  read: (health: Health) => readonly SampleOf<L>[],
) => ({ of, type: 'gauge' as const, help, labels, read });

/** The same for a gauge of one side, which has no samples while the side is away. */
const inWarehouse = <const L extends Labels>(
  help: string,
  labels: L,
  read: (warehouse: WarehouseHealth) => readonly SampleOf<L>[],
) => measured('warehouse', help, labels, ({ warehouse }) => ('away' in warehouse ? [] : read(warehouse)));
const inTemporal = <const L extends Labels>(
  help: string,
  labels: L,
  read: (temporal: TemporalHealth) => readonly SampleOf<L>[],
) => measured('temporal', help, labels, ({ temporal }) => ('away' in temporal ? [] : read(temporal)));

/** The sample of a gauge without labels; null is absent. */
const one = (value: number | null): readonly SampleOf<NoLabels>[] => (value === null ? [] : [{ value }]);
const yes = (condition: boolean): number => (condition ? 1 : 0);
const unixTime = (text: string): number => Date.parse(rfc3339(text)) / 1_000;

/** Adds the kind of runs to the samples of each kind. */
const eachKind = <S extends object>(
  { runs }: WarehouseHealth,
  samples: (of: KindOfRuns) => readonly S[],
): (S & { readonly kind: string })[] =>
  Object.entries(runs).flatMap(([kind, of]) => samples(of).map((sample) => ({ ...sample, kind })));

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8];
const ofRuns = { kind: 'full or reconcile' } as const;
const ofEndpoint = { endpoint: 'an endpoint of the catalogue, or ping' } as const;
const ofFailure = { code: 'the failure' } as const;
const ofPart = { part: 'receiver, worker or console' } as const;
const ofGroup = { result: 'durable or unavailable' } as const;
const ofQueue = {
  task_queue: 'metersync-events, metersync-backfill, metersync-checks or metersync-watch',
} as const;
const ofRecords = { kind: 'connection, document or interval' } as const;
const ofSchedule = { schedule: 'full or reconcile' } as const;
const ofState = { state: 'complete, partial, suspect or failed' } as const;

/** What the parts of one process measure. */
const ofProcesses = {
  metersync_build_info: gauge('process', 'Always 1. The labels say what is running.', {
    ...ofPart,
    version: 'of metersync',
    schema: 'migrations that a worker knows; empty for other parts',
    build_id: "of a worker's workflows; empty for other parts",
  }),
  metersync_ready: gauge('process', 'Whether a part can do its work (/readyz).', ofPart),
  metersync_receiver_answers_total: counter('receiver', 'Answers to HTTP requests.', {
    reason: 'durable, or the reason why not',
    code: 'HTTP status',
  }),
  metersync_receiver_answer_duration_seconds: histogram(
    'receiver',
    'Time from the headers of a delivery to its answer.',
    { result: 'durable, refused or unavailable' },
    seconds,
  ),
  metersync_receiver_group_events: histogram(
    'receiver',
    'Number of events that shared one durable start.',
    ofGroup,
    [1, 2, 5, 10, 25, 50, 100, 250, 500],
  ),
  metersync_receiver_group_start_duration_seconds: histogram(
    'receiver',
    "Time from a group's first attempt to its end.",
    ofGroup,
    seconds,
  ),
  metersync_receiver_waiting_events: gauge('receiver', 'Verified events that wait for their answer.'),
  metersync_receiver_waiting_limit_events: gauge(
    'receiver',
    'Number of waiting events above which deliveries are answered 503.',
  ),
  metersync_receiver_secrets_valid: gauge(
    'receiver',
    'Whether the last attempt to read WEBHOOK_SECRETS_FILE succeeded.',
  ),
  metersync_service_requests_total: counter('worker', 'Requests to the service, retries included.', {
    ...ofEndpoint,
    result: 'ok, busy, error, unreachable, unreadable, refused, not_found or ended',
  }),
  metersync_service_request_duration_seconds: histogram(
    'worker',
    'Time from a request to its complete answer.',
    ofEndpoint,
    [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  ),
  metersync_service_received_bytes_total: counter('worker', 'Bytes of answers on the wire.', ofEndpoint),
  metersync_service_concurrency: gauge(
    'worker',
    'Requests that may be in flight now: fewer than SERVICE_MAX_CONCURRENCY after the service asked to slow down.',
  ),
  metersync_service_gate_closed_seconds_total: counter(
    'worker',
    'Time for which the service made all requests wait.',
  ),
  metersync_events_recorded_total: counter('worker', 'Events recorded in the journal.', {
    result: 'new, duplicate or dead',
  }),
  metersync_rows_written_total: counter('worker', 'Rows written, and records that Postgres refused.', {
    resource: 'of the catalogue',
    by: 'event, catch_up, backfill or reconcile',
    change: 'inserted, changed or rejected',
  }),
  metersync_warehouse_pool_connections: gauge(
    'worker',
    'Connections to Postgres, and callers that wait for one.',
    { state: 'idle, used or waiting' },
  ),
};

/** What all workers share: the warehouse, Temporal and the verdict. */
export const ofDeployment = {
  metersync_warehouse_up: measured(
    'warehouse',
    'Whether Postgres answered, and takes writes.',
    {},
    ({ schema }) => one(yes(schema !== null)),
  ),
  metersync_schema_migrations: measured(
    'warehouse',
    'Migrations of the schema.',
    { side: 'known to the worker, or applied' },
    ({ schema }) => Object.entries(schema ?? {}).map(([side, value]) => ({ value, side })),
  ),
  metersync_events_pending: inWarehouse(
    'Events whose record has to be read again; 10001 means more than 10,000.',
    { ...ofRecords, state: 'due, waiting or parked' },
    ({ pending }) =>
      Object.entries(pending).flatMap(([kind, events]) =>
        pendingStates.map((state) => ({ value: events[state], kind, state })),
      ),
  ),
  metersync_events_oldest_pending_seconds: inWarehouse(
    'How long the oldest pending event waits.',
    ofRecords,
    ({ pending }) =>
      Object.entries(pending).map(([kind, { oldestSeconds }]) => ({ value: oldestSeconds ?? 0, kind })),
  ),
  metersync_event_delay_seconds: inWarehouse(
    'Delay of the last 1,000 events, from receipt to the row and to the read of the record.',
    { step: 'row or record', percentile: '50 or 99' },
    ({ delays }) =>
      Object.entries(delays).flatMap(([step, delay]) =>
        delay === null
          ? []
          : [
              { value: delay.p50, step, percentile: '50' },
              { value: delay.p99, step, percentile: '99' },
            ],
      ),
  ),
  metersync_events_oldest_due_seconds: inWarehouse(
    'How long the oldest due record has been due.',
    {},
    ({ oldestDueSeconds }) => one(Math.max(0, oldestDueSeconds ?? 0)),
  ),
  metersync_events_unsettled: inWarehouse(
    'Dead events, and events that became missing within a day, up to 1,001.',
    { outcome: 'dead or missing' },
    ({ dead, missingLately }) => [
      { value: dead, outcome: 'dead' },
      { value: missingLately, outcome: 'missing' },
    ],
  ),
  metersync_parked_events: inWarehouse('Events parked until somebody acts.', ofFailure, ({ parked }) =>
    parked.map(({ code, events }) => ({ value: events, code })),
  ),
  metersync_parked_parts: inWarehouse(
    'Parts of backfills that failed, until a later run reads them.',
    ofFailure,
    ({ parked }) => parked.map(({ code, parts }) => ({ value: parts, code })),
  ),
  metersync_event_last_received_seconds: inWarehouse('Seconds since the last event.', {}, ({ silence }) =>
    one(silence.quietSeconds),
  ),
  metersync_silence_limit_seconds: inWarehouse('SILENCE_HOURS; 0 turns it off.', {}, ({ silenceHours }) =>
    one(silenceHours * 3_600),
  ),
  metersync_missed_rows: inWarehouse(
    'Changes without an event that runs found within a day or since the last event.',
    {},
    ({ silence }) => one(silence.missedRows),
  ),
  metersync_runs_running: inWarehouse('Runs that have not ended.', ofRuns, (warehouse) =>
    eachKind(warehouse, ({ running }) => [{ value: running }]),
  ),
  metersync_run_last_end_timestamp_seconds: inWarehouse(
    'When the last run of a kind ended.',
    { ...ofRuns, ...ofState },
    (warehouse) =>
      eachKind(warehouse, ({ last }) =>
        last === null ? [] : [{ value: unixTime(last.finishedAt), state: last.state }],
      ),
  ),
  metersync_run_last_parts: inWarehouse(
    'Parts of the last run of a kind.',
    { ...ofRuns, ...ofState },
    (warehouse) =>
      eachKind(warehouse, ({ last }) =>
        Object.entries(last?.parts ?? {})
          .filter(([state]) => state !== 'running')
          .map(([state, value]) => ({ value, state })),
      ),
  ),
  metersync_run_last_missed_rows: inWarehouse(
    'Changes that the last run of a kind found without an event.',
    ofRuns,
    (warehouse) => eachKind(warehouse, ({ last }) => (last === null ? [] : [{ value: last.missedRows }])),
  ),
  metersync_deletes_waiting: inWarehouse(
    'Records and readings whose deletion waits for a decision.',
    {},
    ({ undecidedDeletes }) => one(undecidedDeletes),
  ),
  metersync_rejected_records: inWarehouse('Records that Postgres refuses.', {}, ({ rejectedRecords }) =>
    one(rejectedRecords),
  ),
  metersync_interval_shortfall_readings: inWarehouse(
    'Readings that events reported and the service does not list.',
    {},
    ({ intervalShortfall }) => one(intervalShortfall.readings),
  ),
  metersync_data_issues: inWarehouse(
    'Open issues of the data that nobody acknowledged; 10001 means more than 10,000.',
    { check: 'as ops.data_issue_checks lists them', severity: 'error, warning or info' },
    ({ issues }) => issues.map(({ open, check, severity }) => ({ value: open, check, severity })),
  ),
  metersync_temporal_up: measured('temporal', 'Whether Temporal answered.', {}, ({ temporal }) =>
    one(yes(!('away' in temporal))),
  ),
  metersync_temporal_queue_polled: inTemporal('Whether any worker polls a queue.', ofQueue, ({ idle }) =>
    Object.entries(taskQueues).map(([name, queue]) => ({
      value: yes(!idle.includes(name)),
      task_queue: queue,
    })),
  ),
  metersync_worker_version_current: inTemporal(
    'Whether the workers to which Temporal gives events poll.',
    {},
    ({ absent }) => one(yes(absent === null)),
  ),
  metersync_schedule_paused: inTemporal('Whether a schedule is paused.', ofSchedule, ({ schedules }) =>
    schedules
      .filter(({ state }) => state !== 'absent')
      .map(({ name, state }) => ({ value: yes(state === 'paused'), schedule: name })),
  ),
  metersync_run_interval_seconds: inTemporal(
    'Longest time between starts of a schedule; absent while it is paused.',
    ofRuns,
    ({ schedules }) =>
      schedules.flatMap(({ name, intervalSeconds }) =>
        intervalSeconds === null ? [] : [{ value: intervalSeconds, kind: name }],
      ),
  ),
  metersync_temporal_open_groups: inTemporal(
    'Groups of events acknowledged and not yet recorded.',
    {},
    ({ openGroups }) => one(openGroups),
  ),
  metersync_temporal_stuck_workflows: inTemporal(
    'Workflows whose task failed several times in a row.',
    {},
    ({ stuckWorkflows }) => one(stuckWorkflows),
  ),
  metersync_temporal_certificate_expiry_timestamp_seconds: inTemporal(
    'When the client certificate for Temporal expires.',
    {},
    ({ certificate }) => one(certificate && unixTime(certificate.expiresAt)),
  ),
  metersync_heartbeat_timestamp_seconds: inWarehouse('When the watch last ran.', {}, ({ watch }) =>
    one(watch.lookedAt === null ? null : unixTime(watch.lookedAt)),
  ),
  metersync_alerts: inWarehouse(
    'Alarms that the watch holds open.',
    { alert: 'of docs/runbooks.md', severity: 'page or ticket' },
    ({ watch }) =>
      watchedNames.map((name) => ({
        value: watch.open.filter((alert) => alert.name === name).length,
        alert: name,
        severity: alarmTypes[name].severity,
      })),
  ),
  metersync_notifications_waiting_seconds: inWarehouse(
    'For how long NOTIFY_URL has not accepted an alarm; absent if none waits.',
    {},
    ({ watch }) => one(watch.unsent?.seconds ?? null),
  ),
  metersync_verdict: measured(
    'warehouse',
    '1 for the verdict of metersync status, 0 for the others.',
    { verdict: 'in_sync, catching_up, unknown, needs_you or broken' },
    (health) => {
      const { word } = verdictOf(health);
      return verdictWords.map((verdict) => ({
        value: yes(verdict === word),
        verdict: verdict.toLowerCase().replaceAll(' ', '_'),
      }));
    },
  ),
};

export const metricTypes = { ...ofProcesses, ...ofDeployment };
type Catalogue = typeof metricTypes;
export type MetricName = keyof Catalogue;

/** Names of the metrics of a type. */
export type MetricOf<T extends MetricType['type']> = {
  [N in MetricName]: Catalogue[N]['type'] extends T ? N : never;
}[MetricName];

/** Labels of a metric. */
export type LabelOf<N extends MetricName> = keyof Catalogue[N]['labels'] & string;

/** One value of a metric, with its labels. */
export type Sample<N extends MetricName> = SampleOf<Catalogue[N]['labels']>;

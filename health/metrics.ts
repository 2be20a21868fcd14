import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

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
  readonly labels: Readonly<Record<string, string>>;
  /** Upper bounds of a histogram's buckets. */
  readonly buckets?: readonly number[];
}

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8];

/** Makes the type of a metric of one kind. */
const made =
  <T extends MetricType['type']>(type: T) =>
  <const L extends MetricType['labels'] = Readonly<Record<never, string>>>(
    of: MetricType['of'],
    help: string,
    labels?: L,
    buckets?: readonly number[],
  ) => ({ of, type, help, labels: labels ?? ({} as L), ...(buckets && { buckets }) });
const gauge = made('gauge');
const counter = made('counter');
const histogram = made('histogram');

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

export const metricTypes = {
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
  metersync_worker_polling: gauge(
    'worker',
    'Whether the worker of a queue keeps polling (/healthz).',
    ofQueue,
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
  metersync_warehouse_up: gauge('warehouse', 'Whether Postgres answered, and takes writes.'),
  metersync_schema_migrations: gauge('warehouse', 'Migrations of the schema.', {
    side: 'known to the worker, or applied',
  }),
  metersync_events_pending: gauge(
    'warehouse',
    'Events whose record has to be read again; 10001 means more than 10,000.',
    { ...ofRecords, state: 'due, waiting or parked' },
  ),
  metersync_events_oldest_pending_seconds: gauge(
    'warehouse',
    'How long the oldest pending event waits.',
    ofRecords,
  ),
  metersync_event_delay_seconds: gauge(
    'warehouse',
    'Delay of the last 1,000 events, from receipt to the row and to the read of the record.',
    { step: 'row or record', percentile: '50 or 99' },
  ),
  metersync_events_oldest_due_seconds: gauge('warehouse', 'How long the oldest due record has been due.'),
  metersync_events_unsettled: gauge(
    'warehouse',
    'Dead events, and events that became missing within a day, up to 1,001.',
    { outcome: 'dead or missing' },
  ),
  metersync_parked_events: gauge('warehouse', 'Events parked until somebody acts.', ofFailure),
  metersync_parked_parts: gauge(
    'warehouse',
    'Parts of backfills that failed, until a later run reads them.',
    ofFailure,
  ),
  metersync_event_last_received_seconds: gauge('warehouse', 'Seconds since the last event.'),
  metersync_silence_limit_seconds: gauge('warehouse', 'SILENCE_HOURS; 0 turns it off.'),
  metersync_missed_rows: gauge(
    'warehouse',
    'Changes without an event that runs found within a day or since the last event.',
  ),
  metersync_runs_running: gauge('warehouse', 'Runs that have not ended.', ofRuns),
  metersync_run_last_end_timestamp_seconds: gauge('warehouse', 'When the last run of a kind ended.', {
    ...ofRuns,
    ...ofState,
  }),
  metersync_run_last_parts: gauge('warehouse', 'Parts of the last run of a kind.', { ...ofRuns, ...ofState }),
  metersync_run_last_missed_rows: gauge(
    'warehouse',
    'Changes that the last run of a kind found without an event.',
    ofRuns,
  ),
  metersync_deletes_waiting: gauge('warehouse', 'Records and readings whose deletion waits for a decision.'),
  metersync_rejected_records: gauge('warehouse', 'Records that Postgres refuses.'),
  metersync_interval_shortfall_readings: gauge(
    'warehouse',
    'Readings that events reported and the service does not list.',
  ),
  metersync_data_issues: gauge(
    'warehouse',
    'Open issues of the data that nobody acknowledged; 10001 means more than 10,000.',
    { check: 'as ops.data_issue_checks lists them', severity: 'error, warning or info' },
  ),
  metersync_temporal_up: gauge('temporal', 'Whether Temporal answered.'),
  metersync_temporal_queue_polled: gauge('temporal', 'Whether any worker polls a queue.', ofQueue),
  metersync_worker_version_current: gauge(
    'temporal',
    'Whether the workers to which Temporal gives events poll.',
  ),
  metersync_schedule_paused: gauge('temporal', 'Whether a schedule is paused.', ofSchedule),
  metersync_run_interval_seconds: gauge(
    'temporal',
    'Longest time between starts of a schedule; absent while it is paused.',
    ofRuns,
  ),
  metersync_temporal_open_groups: gauge('temporal', 'Groups of events acknowledged and not yet recorded.'),
  metersync_temporal_stuck_workflows: gauge(
    'temporal',
    'Workflows whose task failed several times in a row.',
  ),
  metersync_temporal_certificate_expiry_timestamp_seconds: gauge(
    'temporal',
    'When the client certificate for Temporal expires.',
  ),
  metersync_heartbeat_timestamp_seconds: gauge('warehouse', 'When the watch last ran.'),
  metersync_alerts: gauge('warehouse', 'Alarms that the watch holds open.', {
    alert: 'of docs/runbooks.md',
    severity: 'page or ticket',
  }),
  metersync_notifications_waiting_seconds: gauge(
    'warehouse',
    'For how long NOTIFY_URL has not accepted an alarm; absent if none waits.',
  ),
  metersync_verdict: gauge('warehouse', '1 for the verdict of metersync status, 0 for the others.', {
    verdict: 'in_sync, catching_up, unknown, needs_you or broken',
  }),
};

type Catalogue = typeof metricTypes;
export type MetricName = keyof Catalogue;

/** Names of the metrics of a type. */
export type MetricOf<T extends MetricType['type']> = {
  [N in MetricName]: Catalogue[N]['type'] extends T ? N : never;
}[MetricName];

/** Labels of a metric. */
export type LabelOf<N extends MetricName> = keyof Catalogue[N]['labels'] & string;

/** One value of a metric, with its labels. */
export type Sample<N extends MetricName> = { readonly value: number } & Readonly<Record<LabelOf<N>, string>>;

/** The metrics of a process. */
export interface Metrics {
  /** Adds a metric that is read at each scrape, and absent without samples. Counters return totals. */
  read<N extends MetricOf<'counter' | 'gauge'>>(
    name: N,
    samples: () => readonly Sample<N>[] | Promise<readonly Sample<N>[]>,
  ): void;
  histogram<N extends MetricOf<'histogram'>>(name: N): Histogram<LabelOf<N>>;
  /** Writes all metrics in Prometheus' text format. */
  asText(): Promise<string>;
}

export const metricsContentType = Registry.PROMETHEUS_CONTENT_TYPE;

/** Makes the registry of a process, with Node's own metrics in it. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const configuration = (name: MetricName) => {
    const { help, labels, buckets }: MetricType = metricTypes[name];
    return {
      name,
      help,
      labelNames: Object.keys(labels),
      registers: [registry],
      ...(buckets === undefined ? {} : { buckets: [...buckets] }),
    };
  };
  return {
    read(name, samples) {
      const Kind = metricTypes[name].type === 'counter' ? Counter : Gauge;
      const configured = configuration(name);
      new Kind({
        ...configured,
        async collect() {
          const now = await samples();
          this.reset();
          // For a metric without labels, the library keeps a 0 of its own.
          if (now.length === 0 && configured.labelNames.length === 0) this.remove();
          for (const { value, ...labels } of now) this.inc(labels, value);
        },
      });
    },
    histogram: (name) => new Histogram(configuration(name)),
    asText: () => registry.metrics(),
  };
}

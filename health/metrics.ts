/**
 * The catalogue of metrics: everything that `/metrics` of a process contains besides Node's and Temporal's own.
 * docs/reference/metrics.md is made from it. No label holds the id of a company, a record or a person.
 */
export interface MetricType {
  /** Whose fact it is. Every worker reports the warehouse's and Temporal's, so queries say `max by`. */
  readonly of: 'process' | 'receiver' | 'worker' | 'warehouse' | 'temporal';
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Each label with what its values are. */
  readonly labels: Readonly<Record<string, string>>;
  /** Upper bounds of a histogram's buckets. */
  readonly buckets?: readonly number[];
}

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8] as const;

export const metricTypes = {
  metersync_build_info: {
    of: 'process',
    type: 'gauge',
    help: 'Always 1; the labels say what runs.',
    labels: {
      part: 'receiver, worker or console',
      version: 'of metersync',
      schema: 'migrations that a worker knows; else empty',
      build_id: "of a worker's workflows; else empty",
    },
  },
  metersync_ready: {
    of: 'process',
    type: 'gauge',
    help: 'Whether a part can do its work (/readyz).',
    labels: { part: 'receiver, worker or console' },
  },
  metersync_receiver_answers_total: {
    of: 'receiver',
    type: 'counter',
    help: 'Answers to HTTP requests.',
    labels: { reason: 'durable, or why not', code: 'HTTP status' },
  },
  metersync_receiver_answer_duration_seconds: {
    of: 'receiver',
    type: 'histogram',
    help: 'From the headers of a delivery to its answer.',
    labels: { result: 'durable, refused or unavailable' },
    buckets: seconds,
  },
  metersync_receiver_dropped_connections_total: {
    of: 'receiver',
    type: 'counter',
    help: 'New connections that were closed unread because too many were open.',
    labels: {},
  },
  metersync_receiver_group_events: {
    of: 'receiver',
    type: 'histogram',
    help: 'Events that shared one durable start.',
    labels: { result: 'durable or unavailable' },
    buckets: [1, 2, 5, 10, 25, 50, 100, 250, 500],
  },
  metersync_receiver_group_start_duration_seconds: {
    of: 'receiver',
    type: 'histogram',
    help: "From a group's first attempt to its end.",
    labels: { result: 'durable or unavailable' },
    buckets: seconds,
  },
  metersync_receiver_waiting_events: {
    of: 'receiver',
    type: 'gauge',
    help: 'Verified events that wait for their answer.',
    labels: {},
  },
  metersync_receiver_waiting_bytes: {
    of: 'receiver',
    type: 'gauge',
    help: 'Their encoded bytes.',
    labels: {},
  },
  metersync_receiver_waiting_limit_events: {
    of: 'receiver',
    type: 'gauge',
    help: 'Waiting events above which deliveries are answered 503.',
    labels: {},
  },
  metersync_receiver_last_durable_timestamp_seconds: {
    of: 'receiver',
    type: 'gauge',
    help: 'When it last answered 204.',
    labels: {},
  },
  metersync_receiver_secrets: {
    of: 'receiver',
    type: 'gauge',
    help: 'Signing secrets in force.',
    labels: {},
  },
  metersync_receiver_secrets_valid: {
    of: 'receiver',
    type: 'gauge',
    help: 'Whether WEBHOOK_SECRETS_FILE could be read last.',
    labels: {},
  },
  metersync_worker_polling: {
    of: 'worker',
    type: 'gauge',
    help: 'Whether the worker of a queue keeps polling (/healthz).',
    labels: { task_queue: 'metersync-events, metersync-backfill, metersync-checks or metersync-watch' },
  },
  metersync_worker_temporal_metrics_up: {
    of: 'worker',
    type: 'gauge',
    help: "Whether Temporal's own metrics are in this answer.",
    labels: {},
  },
  metersync_service_requests_total: {
    of: 'worker',
    type: 'counter',
    help: 'Requests to the service, retries included.',
    labels: {
      endpoint: 'of the catalogue, or ping',
      result: 'ok, busy, error, unreachable, unreadable, refused, not_found or ended',
    },
  },
  metersync_service_request_duration_seconds: {
    of: 'worker',
    type: 'histogram',
    help: 'From a request to its whole answer.',
    labels: { endpoint: 'of the catalogue, or ping' },
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  },
  metersync_service_received_bytes_total: {
    of: 'worker',
    type: 'counter',
    help: 'Bytes of answers on the wire.',
    labels: { endpoint: 'of the catalogue, or ping' },
  },
  metersync_service_concurrency: {
    of: 'worker',
    type: 'gauge',
    help: 'Requests that may be in flight now: fewer than SERVICE_MAX_CONCURRENCY after the service asked to slow down.',
    labels: {},
  },
  metersync_service_gate_closed_seconds_total: {
    of: 'worker',
    type: 'counter',
    help: 'Time in which the service had all requests wait.',
    labels: {},
  },
  metersync_events_recorded_total: {
    of: 'worker',
    type: 'counter',
    help: 'Events recorded in the journal.',
    labels: { result: 'new, duplicate or dead' },
  },
  metersync_rows_written_total: {
    of: 'worker',
    type: 'counter',
    help: 'Rows written, and records that Postgres refused.',
    labels: {
      resource: 'of the catalogue',
      by: 'event, catch_up, backfill or reconcile',
      change: 'inserted, changed or rejected',
    },
  },
  metersync_warehouse_pool_connections: {
    of: 'worker',
    type: 'gauge',
    help: 'Connections to Postgres, and callers that wait for one.',
    labels: { state: 'idle, used or waiting' },
  },
  metersync_warehouse_up: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Whether Postgres answered, and takes writes.',
    labels: {},
  },
  metersync_schema_migrations: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Migrations of the schema.',
    labels: { side: 'known to the worker, or applied' },
  },
  metersync_warehouse_size_bytes: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Tables and indexes, as Postgres last counted.',
    labels: { schema: 'utility, history, ops or metersync' },
  },
  metersync_events_pending: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Events whose record has to be read again; 10001 for any more.',
    labels: { kind: 'connection, document or interval', state: 'due, waiting or parked' },
  },
  metersync_events_oldest_pending_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'How long the oldest pending event waits.',
    labels: { kind: 'connection, document or interval' },
  },
  metersync_event_delay_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Of the last 1,000 events, from receipt to the row, and to the read of the record.',
    labels: { step: 'row or record', percentile: '50 or 99' },
  },
  metersync_events_oldest_due_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'How long the oldest due record has been due.',
    labels: {},
  },
  metersync_events_unsettled: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Dead events, and events that became missing within a day, up to 1,001.',
    labels: { outcome: 'dead or missing' },
  },
  metersync_parked_events: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Events parked until somebody acts.',
    labels: { code: 'the failure' },
  },
  metersync_parked_parts: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Parts of backfills that failed, until a later run reads them.',
    labels: { code: 'the failure' },
  },
  metersync_parked_since_timestamp_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Since when work is parked.',
    labels: { code: 'the failure' },
  },
  metersync_event_last_received_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Seconds since the last event.',
    labels: {},
  },
  metersync_silence_limit_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'SILENCE_HOURS; 0 turns it off.',
    labels: {},
  },
  metersync_missed_rows: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Changes that runs found without an event, within a day or since the last event.',
    labels: {},
  },
  metersync_runs_running: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Runs that have not ended.',
    labels: { kind: 'full or reconcile' },
  },
  metersync_run_last_end_timestamp_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'When the last run of a kind ended.',
    labels: { kind: 'full or reconcile', state: 'complete, partial, suspect or failed' },
  },
  metersync_run_last_complete_age_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Seconds since the last complete run of a kind ended.',
    labels: { kind: 'full or reconcile' },
  },
  metersync_run_last_duration_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'How long the last run of a kind took.',
    labels: { kind: 'full or reconcile' },
  },
  metersync_run_last_parts: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Parts of the last run of a kind.',
    labels: { kind: 'full or reconcile', state: 'complete, partial, suspect or failed' },
  },
  metersync_run_last_missed_rows: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Changes that the last run of a kind found without an event.',
    labels: { kind: 'full or reconcile' },
  },
  metersync_run_running_since_timestamp_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'When the run under way began.',
    labels: { kind: 'full or reconcile' },
  },
  metersync_run_progress_age_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Seconds since the run under way last made progress.',
    labels: { kind: 'full or reconcile' },
  },
  metersync_deletes_waiting: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Records and readings whose deletion waits for a decision.',
    labels: {},
  },
  metersync_rejected_records: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Records that Postgres refuses.',
    labels: {},
  },
  metersync_typed_views_blocked: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Typed views that lack values.',
    labels: {},
  },
  metersync_interval_shortfall_readings: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Readings that events reported and the service does not list.',
    labels: {},
  },
  metersync_data_issues: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Open issues of the data that nobody acknowledged; 10001 for any more.',
    labels: { check: 'as ops.data_issue_checks lists them', severity: 'error, warning or info' },
  },
  metersync_temporal_up: {
    of: 'temporal',
    type: 'gauge',
    help: 'Whether Temporal answered.',
    labels: {},
  },
  metersync_temporal_queue_polled: {
    of: 'temporal',
    type: 'gauge',
    help: 'Whether any worker polls a queue.',
    labels: { task_queue: 'metersync-events, metersync-backfill, metersync-checks or metersync-watch' },
  },
  metersync_worker_version_current: {
    of: 'temporal',
    type: 'gauge',
    help: 'Whether the workers to which Temporal gives events poll.',
    labels: {},
  },
  metersync_schedule_paused: {
    of: 'temporal',
    type: 'gauge',
    help: 'Whether a schedule is paused.',
    labels: { schedule: 'full or reconcile' },
  },
  metersync_schedule_missed_total: {
    of: 'temporal',
    type: 'counter',
    help: 'Starts skipped, as Temporal was away for too long.',
    labels: { schedule: 'full or reconcile' },
  },
  metersync_run_interval_seconds: {
    of: 'temporal',
    type: 'gauge',
    help: 'Longest time between starts of a schedule; absent while it is paused.',
    labels: { kind: 'full or reconcile' },
  },
  metersync_temporal_open_groups: {
    of: 'temporal',
    type: 'gauge',
    help: 'Groups of events acknowledged and not yet recorded.',
    labels: {},
  },
  metersync_temporal_stalled_groups: {
    of: 'temporal',
    type: 'gauge',
    help: 'Those that began more than 15 minutes ago.',
    labels: {},
  },
  metersync_temporal_stuck_workflows: {
    of: 'temporal',
    type: 'gauge',
    help: 'Workflows whose task failed several times in a row.',
    labels: {},
  },
  metersync_temporal_certificate_expiry_timestamp_seconds: {
    of: 'temporal',
    type: 'gauge',
    help: 'When the client certificate for Temporal expires.',
    labels: {},
  },
  metersync_heartbeat_timestamp_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'When the watch last ran.',
    labels: {},
  },
  metersync_alerts: {
    of: 'warehouse',
    type: 'gauge',
    help: 'Alarms that the watch holds open.',
    labels: { alert: 'of docs/runbooks.md', severity: 'page or ticket' },
  },
  metersync_notifications_waiting_seconds: {
    of: 'warehouse',
    type: 'gauge',
    help: 'For how long NOTIFY_URL has not taken an alarm; absent where none waits.',
    labels: {},
  },
  metersync_notifications_total: {
    of: 'worker',
    type: 'counter',
    help: 'Tries to send alarms to NOTIFY_URL.',
    labels: { result: 'taken or refused' },
  },
  metersync_verdict: {
    of: 'warehouse',
    type: 'gauge',
    help: '1 for the verdict of metersync status, 0 for the others.',
    labels: { verdict: 'in_sync, catching_up, unknown, needs_you or broken' },
  },
} as const satisfies Readonly<Record<string, MetricType>>;

type Metrics = typeof metricTypes;
export type MetricName = keyof Metrics;

/** Names of the metrics of a type. */
export type MetricOf<T extends MetricType['type']> = {
  [N in MetricName]: Metrics[N]['type'] extends T ? N : never;
}[MetricName];

/** Labels of a metric. */
export type LabelOf<N extends MetricName> = keyof Metrics[N]['labels'] & string;

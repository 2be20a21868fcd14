import type { MetricName, MetricOf } from '../contract/metrics.ts';

/**
 * The catalogue of dashboards. `npm run verify -- --write` makes deploy/grafana/dashboards/*.json from it
 * (verify/dashboard-pages.ts). A panel's title is the question that it answers.
 */
export interface Dashboard {
  readonly title: string;
  readonly means: string;
  readonly panels: readonly Panel[];
}

export interface Panel {
  readonly asks: string;
  /** How to read it. */
  readonly means: string;
  /** Lines over time when absent. */
  readonly shows?: 'words' | 'table';
  /** Of Grafana's units; a plain number when absent. */
  readonly unit?: 's' | 'bytes' | 'reqps' | 'cps' | 'percentunit';
  /** Values above this are coloured. */
  readonly limit?: number;
  /** Columns of 24; half of them when absent. */
  readonly width?: number;
  readonly queries: readonly Query[];
}

export interface Query {
  readonly promql: string;
  /** Name of a series; `{{label}}` is the value of a label. */
  readonly legend: string;
}

/** Temporal's own metrics, and Node's, that panels ask for. */
type OtherMetric =
  | 'temporal_num_pollers'
  | 'temporal_long_request_total'
  | 'temporal_workflow_task_schedule_to_start_latency_seconds_bucket'
  | 'temporal_activity_schedule_to_start_latency_seconds_bucket'
  | 'temporal_worker_task_slots_available'
  | 'temporal_sticky_cache_size'
  | 'temporal_workflow_completed_total'
  | 'temporal_workflow_task_execution_failed_total'
  | 'temporal_activity_execution_failed_total'
  | 'temporal_request_total'
  | 'temporal_request_failure_total'
  | 'nodejs_eventloop_lag_p99_seconds'
  | 'nodejs_gc_duration_seconds_sum'
  | 'nodejs_heap_size_used_bytes'
  | 'process_resident_memory_bytes'
  | 'process_cpu_seconds_total';

type Series = MetricName | `${MetricOf<'histogram'>}_${'bucket' | 'sum' | 'count'}` | OtherMetric;

/** Selects series of the jobs and namespaces that the dashboard is set to. */
const of = (name: Series, labels?: string): string =>
  `${name}{job=~"$job",namespace=~"$namespace"${labels === undefined ? '' : `,${labels}`}}`;

/** A fact that several processes report, by the labels that tell facts apart. */
const max = (name: Series, ...by: readonly string[]): string => `max${listed(by)}(${of(name)})`;
const sum = (name: Series, ...by: readonly string[]): string => `sum${listed(by)}(${of(name)})`;
const rate = (series: string, ...by: readonly string[]): string =>
  `sum${listed(by)}(rate(${series}[$__rate_interval]))`;
const listed = (by: readonly string[]): string => (by.length === 0 ? '' : ` by (${by.join(', ')}) `);

/** The time within which a share of what a histogram counts was done. */
function percentiles(name: Series & `${string}_bucket`, ...by: readonly string[]): Query[] {
  const legend = by.map((label) => ` {{${label}}}`).join('');
  return ['0.5', '0.99'].map((share) => ({
    promql: `histogram_quantile(${share}, ${rate(of(name), 'le', ...by)})`,
    legend: `p${Number(share) * 100}${legend}`,
  }));
}

export const dashboards = {
  overview: {
    title: 'metersync',
    means: 'Whether the copy is right and fresh, and who has to act.',
    panels: [
      {
        asks: 'Is the copy right and fresh?',
        means: 'The verdict of `metersync status`.',
        shows: 'words',
        width: 6,
        queries: [{ promql: `${max('metersync_verdict', 'verdict')} == 1`, legend: '{{verdict}}' }],
      },
      {
        asks: 'Which alarms are open?',
        means: 'Pending ones have not lasted long enough yet. A name opens its runbook.',
        shows: 'table',
        width: 18,
        queries: [
          {
            // An alarm of what is gone names neither.
            promql:
              'max by (job, namespace, alertname, alertstate, severity, runbook) (ALERTS{alertname=~"Metersync.+",job=~"$job|",namespace=~"$namespace|"})',
            legend: '{{alertname}}',
          },
        ],
      },
      {
        asks: 'How long is work due?',
        means: 'The age of the oldest record that has to be read again.',
        unit: 's',
        limit: 900,
        queries: [
          { promql: max('metersync_events_oldest_due_seconds'), legend: 'oldest due' },
          {
            promql: max('metersync_events_oldest_pending_seconds', 'kind'),
            legend: 'oldest event: {{kind}}',
          },
        ],
      },
      {
        asks: 'How soon is an event in the tables?',
        means: 'Of the last 1,000 events: from receipt to the row, and to the read of the record.',
        unit: 's',
        queries: [
          {
            promql: max('metersync_event_delay_seconds', 'step', 'percentile'),
            legend: '{{step}} p{{percentile}}',
          },
        ],
      },
      {
        asks: 'When did the last event come?',
        means: 'Beyond the limit (`SILENCE_HOURS`) none can likely arrive.',
        unit: 's',
        queries: [
          { promql: max('metersync_event_last_received_seconds'), legend: 'since the last event' },
          { promql: `${max('metersync_silence_limit_seconds')} > 0`, legend: 'limit' },
        ],
      },
      {
        asks: 'What comes in?',
        means: 'Answers to deliveries; `durable` is a 204.',
        unit: 'reqps',
        queries: [
          {
            promql: rate(of('metersync_receiver_answers_total'), 'reason', 'code'),
            legend: '{{reason}} {{code}}',
          },
        ],
      },
      {
        asks: 'How quickly do we answer?',
        means: 'The service gives up after 15 s.',
        unit: 's',
        limit: 8,
        queries: percentiles('metersync_receiver_answer_duration_seconds_bucket', 'result'),
      },
      {
        asks: 'What waits, and why?',
        means:
          'Parked work waits for somebody; the label is the failure, which docs/reference/failures.md explains.',
        queries: [
          { promql: max('metersync_events_pending', 'kind', 'state'), legend: '{{kind}} events: {{state}}' },
          { promql: max('metersync_parked_events', 'code'), legend: 'parked events: {{code}}' },
          { promql: max('metersync_parked_parts', 'code'), legend: 'parked parts: {{code}}' },
          { promql: max('metersync_events_unsettled', 'outcome'), legend: '{{outcome}} events' },
          { promql: max('metersync_deletes_waiting'), legend: 'deletions to decide' },
          { promql: max('metersync_rejected_records'), legend: 'refused records' },
          { promql: max('metersync_typed_views_blocked'), legend: 'blocked views' },
        ],
      },
      {
        asks: 'What is recorded?',
        means: 'Events that the workers wrote to the journal.',
        unit: 'cps',
        queries: [{ promql: rate(of('metersync_events_recorded_total'), 'result'), legend: '{{result}}' }],
      },
      {
        asks: 'What do reads of the service change?',
        means: 'Rows that catch-ups, backfills and reconciles wrote.',
        unit: 'cps',
        queries: [
          { promql: rate(of('metersync_rows_written_total'), 'by', 'change'), legend: '{{by}}: {{change}}' },
        ],
      },
      {
        asks: 'Do events name all changes?',
        means: 'Changes that runs found and no event had named.',
        queries: [
          { promql: max('metersync_missed_rows'), legend: 'lately' },
          { promql: max('metersync_run_last_missed_rows', 'kind'), legend: 'last run: {{kind}}' },
        ],
      },
      {
        asks: 'When was all read last?',
        means: 'The time since the last run of a kind ended, as it ended, beside the time between two.',
        unit: 's',
        queries: [
          { promql: max('metersync_run_interval_seconds', 'kind'), legend: '{{kind}}: from start to start' },
          {
            promql: `time() - ${max('metersync_run_last_end_timestamp_seconds', 'kind', 'state')}`,
            legend: '{{kind}}: {{state}}',
          },
        ],
      },
      {
        asks: 'Which runs are under way?',
        means: 'What the parts of the last ones came to, and whether a schedule is paused.',
        queries: [
          {
            promql: max('metersync_run_last_parts', 'kind', 'state'),
            legend: 'last {{kind}} run: {{state}} parts',
          },
          { promql: max('metersync_runs_running', 'kind'), legend: '{{kind}} runs' },
          { promql: max('metersync_schedule_paused', 'schedule'), legend: '{{schedule}} paused' },
        ],
      },
      {
        asks: 'Is the service well?',
        means: 'Requests of all workers, retries included. `busy` is a 429.',
        unit: 'reqps',
        queries: [{ promql: rate(of('metersync_service_requests_total'), 'result'), legend: '{{result}}' }],
      },
      {
        asks: 'How quickly does the service answer?',
        means: 'From a request to its whole answer.',
        unit: 's',
        queries: percentiles('metersync_service_request_duration_seconds_bucket'),
      },
      {
        asks: 'How large is it getting?',
        means: 'Tables and indexes of each schema.',
        unit: 'bytes',
        queries: [{ promql: max('metersync_warehouse_size_bytes', 'schema'), legend: '{{schema}}' }],
      },
      {
        asks: 'What is wrong in the data?',
        means: 'Open issues of `metersync checks list`, and readings that the service announced and lacks.',
        queries: [
          {
            promql: `sum by (severity) (${max('metersync_data_issues', 'check', 'severity')})`,
            legend: 'issues: {{severity}}',
          },
          { promql: max('metersync_interval_shortfall_readings'), legend: 'missing readings' },
        ],
      },
    ],
  },
  inside: {
    title: 'metersync inside',
    means: 'What receivers, workers and Temporal are busy with, for whoever has to find a cause.',
    panels: [
      {
        asks: 'Which parts are ready?',
        means: 'How many of each say so at `/readyz`.',
        queries: [
          { promql: sum('metersync_ready', 'part'), legend: '{{part}}' },
          { promql: max('metersync_warehouse_up'), legend: 'Postgres answers' },
          { promql: max('metersync_temporal_up'), legend: 'Temporal answers' },
        ],
      },
      {
        asks: 'Which versions run?',
        means: 'Two versions of a part are well while a new one is rolled out.',
        queries: [
          {
            promql: `count by (part, version) (${of('metersync_build_info')})`,
            legend: '{{part}} {{version}}',
          },
        ],
      },
      {
        asks: 'Do workers poll?',
        means: '0 is a worker that stopped, or a queue that nobody polls.',
        queries: [
          {
            promql: `min by (task_queue) (${of('metersync_worker_polling')})`,
            legend: '{{task_queue}}: worker',
          },
          { promql: max('metersync_temporal_queue_polled', 'task_queue'), legend: '{{task_queue}}: polled' },
        ],
      },
      {
        asks: 'How many polls are begun?',
        means: 'A poll lasts a minute at most. Failed ones count, too.',
        unit: 'reqps',
        queries: [
          {
            promql: rate(of('temporal_long_request_total'), 'task_queue', 'operation'),
            legend: '{{task_queue}} {{operation}}',
          },
        ],
      },
      {
        asks: 'How long do tasks wait for a worker?',
        means: 'A growing time asks for another worker.',
        unit: 's',
        limit: 5,
        queries: [
          ...percentiles('temporal_workflow_task_schedule_to_start_latency_seconds_bucket', 'task_queue'),
          ...percentiles('temporal_activity_schedule_to_start_latency_seconds_bucket', 'task_queue').map(
            ({ promql, legend }) => ({ promql, legend: `activities ${legend}` }),
          ),
        ],
      },
      {
        asks: 'How many slots are free?',
        means: 'Activities of backfills fill theirs for hours by design.',
        queries: [
          {
            promql: `min by (task_queue, worker_type) (${of('temporal_worker_task_slots_available')})`,
            legend: '{{task_queue}} {{worker_type}}',
          },
        ],
      },
      {
        asks: 'Which workflows end?',
        means: 'And how many are kept in memory.',
        queries: [
          {
            promql: rate(of('temporal_workflow_completed_total'), 'workflow_type'),
            legend: '{{workflow_type}} a second',
          },
          { promql: sum('temporal_sticky_cache_size', 'task_queue'), legend: '{{task_queue}} in memory' },
        ],
      },
      {
        asks: 'Is anything stuck in Temporal?',
        means: 'Groups that are acknowledged and not yet recorded, and workflows whose task fails.',
        queries: [
          { promql: max('metersync_temporal_open_groups'), legend: 'open groups' },
          { promql: max('metersync_temporal_stuck_workflows'), legend: 'stuck workflows' },
        ],
      },
      {
        asks: 'Does the watch run?',
        means: 'The time since it last ran, and for how long an alarm could not be sent.',
        unit: 's',
        limit: 300,
        queries: [
          { promql: `time() - ${max('metersync_heartbeat_timestamp_seconds')}`, legend: 'since the last' },
          { promql: max('metersync_notifications_waiting_seconds'), legend: 'not sent' },
        ],
      },
      {
        asks: 'What fails in Temporal?',
        means: 'A failed activity is tried again. Failed workflow tasks and refused starts have alarms.',
        unit: 'reqps',
        queries: [
          { promql: rate(of('temporal_request_total')), legend: 'all requests' },
          {
            promql: rate(of('temporal_request_failure_total'), 'operation', 'status_code'),
            legend: '{{operation}} {{status_code}}',
          },
          {
            promql: rate(of('temporal_workflow_task_execution_failed_total'), 'failure_reason'),
            legend: 'workflow tasks: {{failure_reason}}',
          },
          {
            promql: rate(of('temporal_activity_execution_failed_total'), 'activity_type'),
            legend: '{{activity_type}} failed',
          },
        ],
      },
      {
        asks: 'How full is the receiver?',
        means: 'Above the limit deliveries are answered 503.',
        queries: [
          { promql: sum('metersync_receiver_waiting_events'), legend: 'waiting events' },
          { promql: sum('metersync_receiver_waiting_limit_events'), legend: 'limit' },
        ],
      },
      {
        asks: 'How long do starts of groups take?',
        means: "Temporal's answer to a receiver. It grows with a slow disk of Temporal's.",
        unit: 's',
        queries: percentiles('metersync_receiver_group_start_duration_seconds_bucket'),
      },
      {
        asks: 'How large are groups?',
        means: 'Events that share one start: 1 at rest, up to 500 under load.',
        queries: [
          {
            promql: `${rate(of('metersync_receiver_group_events_sum'))} / ${rate(of('metersync_receiver_group_events_count'))}`,
            legend: 'mean',
          },
        ],
      },
      {
        asks: 'Are connections to Postgres short?',
        means: 'Callers that wait for one mean that Postgres is slow or locked.',
        queries: [{ promql: sum('metersync_warehouse_pool_connections', 'state'), legend: '{{state}}' }],
      },
      {
        asks: 'How hard do we ask the service?',
        means: 'A share of time in which it had asked all to wait, and requests that may be in flight.',
        queries: [
          { promql: rate(of('metersync_service_gate_closed_seconds_total')), legend: 'asked to wait' },
          { promql: sum('metersync_service_concurrency', 'bound'), legend: 'concurrency: {{bound}}' },
        ],
      },
      {
        asks: 'How much does the service send?',
        means: 'Bytes a second on the wire.',
        unit: 'bytes',
        queries: [
          { promql: rate(of('metersync_service_received_bytes_total'), 'endpoint'), legend: '{{endpoint}}' },
        ],
      },
      {
        asks: 'Is the event loop free?',
        means: 'A share of time in garbage collection, and by how much timers are late.',
        unit: 's',
        limit: 0.5,
        queries: [
          { promql: max('nodejs_eventloop_lag_p99_seconds', 'instance'), legend: '{{instance}} late (p99)' },
          {
            promql: rate(of('nodejs_gc_duration_seconds_sum'), 'instance'),
            legend: '{{instance}} collecting',
          },
        ],
      },
      {
        asks: 'How busy are processors?',
        means: 'Processors in use by each process.',
        queries: [{ promql: rate(of('process_cpu_seconds_total'), 'instance'), legend: '{{instance}}' }],
      },
      {
        asks: 'How much memory is used?',
        means: 'Of each process, and by its objects.',
        unit: 'bytes',
        queries: [
          { promql: max('process_resident_memory_bytes', 'instance'), legend: '{{instance}}' },
          { promql: max('nodejs_heap_size_used_bytes', 'instance'), legend: '{{instance}} objects' },
        ],
      },
    ],
  },
} as const satisfies Readonly<Record<string, Dashboard>>;

import { taskQueues } from '../contract/names.ts';
import { rfc3339 } from '../contract/times.ts';
import { verdictWords } from './finding-type.ts';
import { alarmTypes, watchedNames } from './findings.ts';
import {
  type Away,
  type Health,
  type KindOfRuns,
  pendingStates,
  type TemporalHealth,
  type WarehouseHealth,
} from './measured.ts';
import type { MetricOf, Metrics, Sample } from './metrics.ts';
import { verdictOf } from './verdict.ts';

/** Adds a metric of one side of a deployment. */
type Read<Side> = <N extends MetricOf<'counter' | 'gauge'>>(
  name: N,
  samples: (side: Side) => readonly Sample<N>[],
) => void;

/**
 * Measures what all workers share: the warehouse, Temporal and the verdict. For a server that is away, only
 * `…_up 0`. `read` remembers its result for some seconds, because each metric calls it, and never rejects.
 */
export function observeDeployment(metrics: Metrics, read: () => Promise<Health>): void {
  const sideOf =
    <K extends 'warehouse' | 'temporal'>(side: K): Read<Exclude<Health[K], Away>> =>
    (name, samples) =>
      metrics.read(name, async () => {
        const health = (await read())[side];
        return 'away' in health ? [] : samples(health as Exclude<Health[K], Away>);
      });
  const warehouse = sideOf('warehouse');
  metrics.read('metersync_verdict', async () => {
    const { word } = verdictOf(await read());
    return verdictWords.map((verdict) => ({
      value: verdict === word ? 1 : 0,
      verdict: verdict.toLowerCase().replaceAll(' ', '_'),
    }));
  });
  metrics.read('metersync_warehouse_up', async () => [{ value: (await read()).schema === null ? 0 : 1 }]);
  metrics.read('metersync_schema_migrations', async () =>
    Object.entries((await read()).schema ?? {}).map(([side, value]) => ({ value, side })),
  );
  metrics.read('metersync_temporal_up', async () => [{ value: 'away' in (await read()).temporal ? 0 : 1 }]);
  observeEvents(warehouse);
  observeRuns(warehouse);
  observeData(warehouse);
  observeAlarms(warehouse);
  observeTemporal(sideOf('temporal'));
}

/** Measures events: how many wait, their delay, how many were given up, and whether they still arrive. */
function observeEvents(read: Read<WarehouseHealth>): void {
  read('metersync_events_pending', ({ pending }) =>
    Object.entries(pending).flatMap(([kind, events]) =>
      pendingStates.map((state) => ({ value: events[state], kind, state })),
    ),
  );
  read('metersync_events_oldest_pending_seconds', ({ pending }) =>
    Object.entries(pending).map(([kind, { oldestSeconds }]) => ({ value: oldestSeconds ?? 0, kind })),
  );
  read('metersync_event_delay_seconds', ({ delays }) =>
    Object.entries(delays).flatMap(([step, delay]) =>
      delay === null
        ? []
        : [
            { value: delay.p50, step, percentile: '50' },
            { value: delay.p99, step, percentile: '99' },
          ],
    ),
  );
  read('metersync_events_oldest_due_seconds', ({ oldestDueSeconds }) => [
    { value: Math.max(0, oldestDueSeconds ?? 0) },
  ]);
  read('metersync_events_unsettled', ({ dead, missingLately }) => [
    { value: dead, outcome: 'dead' },
    { value: missingLately, outcome: 'missing' },
  ]);
  read('metersync_parked_events', ({ parked }) =>
    parked.map(({ code, events }) => ({ value: events, code })),
  );
  read('metersync_parked_parts', ({ parked }) => parked.map(({ code, parts }) => ({ value: parts, code })));
  read('metersync_event_last_received_seconds', ({ silence }) =>
    silence.quietSeconds === null ? [] : [{ value: silence.quietSeconds }],
  );
  read('metersync_silence_limit_seconds', ({ silenceHours }) => [{ value: silenceHours * 3_600 }]);
  read('metersync_missed_rows', ({ silence }) => [{ value: silence.missedRows }]);
}

/** Measures backfills and reconciles: running runs, and the last run of each kind. */
function observeRuns(read: Read<WarehouseHealth>): void {
  read('metersync_runs_running', ({ runs }) =>
    Object.entries(runs).map(([kind, { running }]) => ({ value: running, kind })),
  );
  read(
    'metersync_run_last_end_timestamp_seconds',
    ofRuns(({ last }) => (last === null ? [] : [{ value: unixTime(last.finishedAt), state: last.state }])),
  );
  read(
    'metersync_run_last_parts',
    ofRuns(({ last }) =>
      Object.entries(last?.parts ?? {})
        .filter(([state]) => state !== 'running')
        .map(([state, value]) => ({ value, state })),
    ),
  );
  read(
    'metersync_run_last_missed_rows',
    ofRuns(({ last }) => (last === null ? [] : [{ value: last.missedRows }])),
  );
}

/** Measures the warehouse's data: what is wrong in it, and what waits for a decision. */
function observeData(read: Read<WarehouseHealth>): void {
  read('metersync_deletes_waiting', ({ undecidedDeletes }) => [{ value: undecidedDeletes }]);
  read('metersync_rejected_records', ({ rejectedRecords }) => [{ value: rejectedRecords }]);
  read('metersync_interval_shortfall_readings', ({ intervalShortfall }) => [
    { value: intervalShortfall.readings },
  ]);
  read('metersync_data_issues', ({ issues }) =>
    issues.map(({ open, check, severity }) => ({ value: open, check, severity })),
  );
}

/** Measures the watch: its heartbeat, open alarms and alarms that were not sent. */
function observeAlarms(read: Read<WarehouseHealth>): void {
  read('metersync_heartbeat_timestamp_seconds', ({ watch: { lookedAt } }) =>
    lookedAt === null ? [] : [{ value: unixTime(lookedAt) }],
  );
  read('metersync_alerts', ({ watch }) =>
    watchedNames.map((name) => ({
      value: watch.open.filter((alert) => alert.name === name).length,
      alert: name,
      severity: alarmTypes[name].severity,
    })),
  );
  read('metersync_notifications_waiting_seconds', ({ watch }) =>
    watch.unsent === null ? [] : [{ value: watch.unsent.seconds }],
  );
}

/** Measures Temporal: queues, worker versions, schedules and what is stuck. */
function observeTemporal(read: Read<TemporalHealth>): void {
  read('metersync_temporal_queue_polled', ({ idle }) =>
    Object.entries(taskQueues).map(([name, queue]) => ({
      value: idle.includes(name) ? 0 : 1,
      task_queue: queue,
    })),
  );
  read('metersync_worker_version_current', ({ absent }) => [{ value: absent === null ? 1 : 0 }]);
  read('metersync_schedule_paused', ({ schedules }) =>
    schedules
      .filter(({ state }) => state === 'active' || state === 'paused')
      .map(({ name, state }) => ({ value: state === 'paused' ? 1 : 0, schedule: name })),
  );
  read('metersync_run_interval_seconds', ({ schedules }) =>
    schedules.flatMap(({ name, intervalSeconds }) =>
      intervalSeconds === null ? [] : [{ value: intervalSeconds, kind: name }],
    ),
  );
  read('metersync_temporal_open_groups', ({ openGroups }) => [{ value: openGroups }]);
  read('metersync_temporal_stuck_workflows', ({ stuckWorkflows }) =>
    stuckWorkflows === null ? [] : [{ value: stuckWorkflows }],
  );
  read('metersync_temporal_certificate_expiry_timestamp_seconds', ({ certificate }) =>
    certificate === null ? [] : [{ value: unixTime(certificate.expiresAt) }],
  );
}

/** Adds the kind of runs to the samples of each kind. */
const ofRuns =
  <S extends object>(samples: (runs: KindOfRuns) => readonly S[]) =>
  ({ runs }: WarehouseHealth): (S & { readonly kind: string })[] =>
    Object.entries(runs).flatMap(([kind, of]) => samples(of).map((sample) => ({ ...sample, kind })));

const unixTime = (text: string): number => Date.parse(rfc3339(text)) / 1_000;

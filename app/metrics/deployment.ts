import { type AlertType, alertNames, alertTypes } from '../../contract/alerts.ts';
import { taskQueues } from '../../contract/names.ts';
import { rfc3339 } from '../../contract/times.ts';
import {
  type Away,
  type Health,
  type KindOfRuns,
  pendingStates,
  verdictOf,
  verdictWords,
  type WarehouseHealth,
} from '../../contract/verdict.ts';
import type { Metrics } from './registry.ts';

/**
 * Measures what all workers of a deployment share: the warehouse, Temporal and the verdict. A side that is away
 * has no figures but `…_up 0`, never old ones.
 * @param read remembers for some seconds, as each metric calls it; never rejects
 */
export function observeDeployment(metrics: Metrics, read: () => Promise<Health>): void {
  const of =
    <K extends 'warehouse' | 'temporal'>(side: K) =>
    <S>(samples: (health: Exclude<Health[K], Away>) => readonly S[]) =>
    async (): Promise<readonly S[]> => {
      const health = (await read())[side];
      return 'away' in health ? [] : samples(health as Exclude<Health[K], Away>);
    };
  const ofWarehouse = of('warehouse');
  const ofTemporal = of('temporal');
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
  metrics.read(
    'metersync_warehouse_size_bytes',
    ofWarehouse(({ sizes }) => Object.entries(sizes).map(([schema, value]) => ({ value, schema }))),
  );
  metrics.read(
    'metersync_events_pending',
    ofWarehouse(({ pending }) =>
      Object.entries(pending).flatMap(([kind, events]) =>
        pendingStates.map((state) => ({ value: events[state], kind, state })),
      ),
    ),
  );
  metrics.read(
    'metersync_events_oldest_pending_seconds',
    ofWarehouse(({ pending }) =>
      Object.entries(pending).map(([kind, { oldestSeconds }]) => ({ value: oldestSeconds ?? 0, kind })),
    ),
  );
  metrics.read(
    'metersync_event_delay_seconds',
    ofWarehouse(({ delays }) =>
      Object.entries(delays).flatMap(([step, delay]) =>
        delay === null
          ? []
          : [
              { value: delay.p50, step, percentile: '50' },
              { value: delay.p99, step, percentile: '99' },
            ],
      ),
    ),
  );
  metrics.read(
    'metersync_events_oldest_due_seconds',
    ofWarehouse(({ oldestDueSeconds }) => [{ value: Math.max(0, oldestDueSeconds ?? 0) }]),
  );
  metrics.read(
    'metersync_events_unsettled',
    ofWarehouse(({ dead, missingLately }) => [
      { value: dead, outcome: 'dead' },
      { value: missingLately, outcome: 'missing' },
    ]),
  );
  metrics.read(
    'metersync_parked_events',
    ofWarehouse(({ parked }) => parked.map(({ code, events }) => ({ value: events, code }))),
  );
  metrics.read(
    'metersync_parked_parts',
    ofWarehouse(({ parked }) => parked.map(({ code, parts }) => ({ value: parts, code }))),
  );
  metrics.read(
    'metersync_parked_since_timestamp_seconds',
    ofWarehouse(({ parked }) => parked.map(({ code, since }) => ({ value: unixTime(since), code }))),
  );
  metrics.read(
    'metersync_event_last_received_seconds',
    ofWarehouse(({ silence }) => (silence.quietSeconds === null ? [] : [{ value: silence.quietSeconds }])),
  );
  metrics.read(
    'metersync_silence_limit_seconds',
    ofWarehouse(({ silenceHours }) => [{ value: silenceHours * 3_600 }]),
  );
  metrics.read(
    'metersync_missed_rows',
    ofWarehouse(({ silence }) => [{ value: silence.missedRows }]),
  );
  metrics.read(
    'metersync_runs_running',
    ofWarehouse(({ runs }) => Object.entries(runs).map(([kind, { running }]) => ({ value: running, kind }))),
  );
  metrics.read(
    'metersync_run_last_end_timestamp_seconds',
    ofWarehouse(
      ofRuns(({ last }) => (last === null ? [] : [{ value: unixTime(last.finishedAt), state: last.state }])),
    ),
  );
  metrics.read(
    'metersync_run_last_complete_age_seconds',
    ofWarehouse(ofRuns(({ lastCompleteSecondsAgo: ago }) => (ago === null ? [] : [{ value: ago }]))),
  );
  metrics.read(
    'metersync_run_last_duration_seconds',
    ofWarehouse(
      ofRuns(({ last }) =>
        last === null ? [] : [{ value: unixTime(last.finishedAt) - unixTime(last.startedAt) }],
      ),
    ),
  );
  metrics.read(
    'metersync_run_last_parts',
    ofWarehouse(
      ofRuns(({ last }) =>
        Object.entries(last?.parts ?? {})
          .filter(([state]) => state !== 'running')
          .map(([state, value]) => ({ value, state })),
      ),
    ),
  );
  metrics.read(
    'metersync_run_last_missed_rows',
    ofWarehouse(ofRuns(({ last }) => (last === null ? [] : [{ value: last.missedRows }]))),
  );
  metrics.read(
    'metersync_run_running_since_timestamp_seconds',
    ofWarehouse(
      ofRuns(({ underWay }) => (underWay === null ? [] : [{ value: unixTime(underWay.startedAt) }])),
    ),
  );
  metrics.read(
    'metersync_run_progress_age_seconds',
    ofWarehouse(
      ofRuns(({ underWay }) => (underWay === null ? [] : [{ value: underWay.progressSecondsAgo }])),
    ),
  );
  metrics.read(
    'metersync_deletes_waiting',
    ofWarehouse(({ undecidedDeletes }) => [{ value: undecidedDeletes }]),
  );
  metrics.read(
    'metersync_rejected_records',
    ofWarehouse(({ rejectedRecords }) => [{ value: rejectedRecords }]),
  );
  metrics.read(
    'metersync_typed_views_blocked',
    ofWarehouse(({ blockedViews }) => [{ value: blockedViews }]),
  );
  metrics.read(
    'metersync_interval_shortfall_readings',
    ofWarehouse(({ intervalShortfall }) => [{ value: intervalShortfall.readings }]),
  );
  metrics.read(
    'metersync_data_issues',
    ofWarehouse(({ issues }) =>
      issues.map(({ open, check, severity }) => ({ value: open, check, severity })),
    ),
  );
  metrics.read(
    'metersync_heartbeat_timestamp_seconds',
    ofWarehouse(({ watch: { lookedAt } }) => (lookedAt === null ? [] : [{ value: unixTime(lookedAt) }])),
  );
  metrics.read(
    'metersync_alerts',
    ofWarehouse(({ watch }) =>
      alertNames.flatMap((name) => {
        const { severity, judge }: AlertType = alertTypes[name];
        const value = watch.open.filter((alert) => alert.name === name).length;
        return judge === undefined ? [] : [{ value, alert: name, severity }];
      }),
    ),
  );
  metrics.read(
    'metersync_notifications_waiting_seconds',
    ofWarehouse(({ watch }) => watch.undelivered.map(({ target, seconds }) => ({ value: seconds, target }))),
  );
  metrics.read('metersync_temporal_up', async () => [{ value: 'away' in (await read()).temporal ? 0 : 1 }]);
  metrics.read(
    'metersync_temporal_queue_polled',
    ofTemporal(({ idle }) =>
      Object.entries(taskQueues).map(([name, queue]) => ({
        value: idle.includes(name) ? 0 : 1,
        task_queue: queue,
      })),
    ),
  );
  metrics.read(
    'metersync_worker_version_current',
    ofTemporal(({ absent }) => [{ value: absent === null ? 1 : 0 }]),
  );
  metrics.read(
    'metersync_schedule_paused',
    ofTemporal(({ schedules }) =>
      schedules
        .filter(({ state }) => state === 'active' || state === 'paused')
        .map(({ name, state }) => ({ value: state === 'paused' ? 1 : 0, schedule: name })),
    ),
  );
  metrics.read(
    'metersync_schedule_missed_total',
    ofTemporal(({ schedules }) =>
      schedules
        .filter(({ state }) => state !== 'absent')
        .map(({ name, missed }) => ({ value: missed, schedule: name })),
    ),
  );
  metrics.read(
    'metersync_run_interval_seconds',
    ofTemporal(({ schedules }) =>
      schedules.flatMap(({ name, intervalSeconds }) =>
        intervalSeconds === null ? [] : [{ value: intervalSeconds, kind: name }],
      ),
    ),
  );
  metrics.read(
    'metersync_temporal_open_groups',
    ofTemporal(({ openGroups }) => [{ value: openGroups }]),
  );
  metrics.read(
    'metersync_temporal_stuck_workflows',
    ofTemporal(({ stuckWorkflows }) => (stuckWorkflows === null ? [] : [{ value: stuckWorkflows }])),
  );
  metrics.read(
    'metersync_temporal_certificate_expiry_timestamp_seconds',
    ofTemporal(({ certificate }) =>
      certificate === null ? [] : [{ value: unixTime(certificate.expiresAt) }],
    ),
  );
}

/** Adds the kind of runs to the samples of each. */
const ofRuns =
  <S extends object>(samples: (runs: KindOfRuns) => readonly S[]) =>
  ({ runs }: WarehouseHealth): (S & { readonly kind: string })[] =>
    Object.entries(runs).flatMap(([kind, of]) => samples(of).map((sample) => ({ ...sample, kind })));

const unixTime = (text: string): number => Date.parse(rfc3339(text)) / 1_000;

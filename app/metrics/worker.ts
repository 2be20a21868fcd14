import type { RowsWritten } from '../../activities/reading/rows-written.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import type { Recorded } from '../../db/events/record.ts';
import type { LabelOf, Sample } from '../../health/metrics.ts';
import type { Metrics } from '../../health/registry.ts';
import type { ServiceClient } from '../../service/client.ts';
import type { RequestFigures } from '../../service/request.ts';
import type { Liveness } from '../process/liveness.ts';

export interface WorkerParts {
  readonly warehouses: readonly Warehouse[];
  readonly service: ServiceClient;
  readonly liveness: Liveness;
  /** The build id of its workers, as Temporal shows it. */
  readonly buildId: string;
}

export interface WorkerObserver {
  onRequest(figures: RequestFigures): void;
  onRecorded(recorded: Pick<Recorded, 'fresh' | 'duplicates' | 'dead'>): void;
  onWritten(figures: RowsWritten): void;
  /** Reads the rest from the worker's parts at each scrape. */
  watch(parts: WorkerParts): void;
}

type Requests = Sample<'metersync_service_requests_total'>;

/** Measures a worker, and passes on its parts once it has begun. */
export function observeWorker(metrics: Metrics, onBegun: (parts: WorkerParts) => void): WorkerObserver {
  const durations = metrics.histogram('metersync_service_request_duration_seconds');
  const requests = new Map<string, Requests>();
  const bytes = new Map<string, number>();
  const rows = new Map<string, Sample<'metersync_rows_written_total'>>();
  const recorded = { new: 0, duplicate: 0, dead: 0 };
  metrics.read('metersync_service_requests_total', () => [...requests.values()]);
  metrics.read('metersync_service_received_bytes_total', () =>
    [...bytes].map(([endpoint, value]) => ({ value, endpoint })),
  );
  metrics.read('metersync_rows_written_total', () => [...rows.values()]);
  metrics.read('metersync_events_recorded_total', () =>
    Object.entries(recorded).map(([result, value]) => ({ value, result })),
  );
  return {
    onRequest({ endpoint, result, ms, bytes: received }) {
      durations.observe({ endpoint }, ms / 1_000);
      const key = `${endpoint} ${result}`;
      requests.set(key, { value: (requests.get(key)?.value ?? 0) + 1, endpoint, result });
      bytes.set(endpoint, (bytes.get(endpoint) ?? 0) + received);
    },
    onRecorded({ fresh, duplicates, dead }) {
      recorded.new += fresh - dead;
      recorded.duplicate += duplicates;
      recorded.dead += dead;
    },
    onWritten({ resource, by, ...written }) {
      for (const change of ['inserted', 'changed', 'rejected'] as const) {
        if (written[change] === 0) continue;
        const key = `${resource} ${by} ${change}`;
        rows.set(key, { value: (rows.get(key)?.value ?? 0) + written[change], resource, by, change });
      }
    },
    watch(parts) {
      onBegun(parts);
      const { warehouses, service, liveness } = parts;
      metrics.read('metersync_warehouse_pool_connections', () => connections(warehouses));
      metrics.read('metersync_service_concurrency', () => [{ value: service.pace().concurrency }]);
      metrics.read('metersync_service_gate_closed_seconds_total', () => [
        { value: service.pace().closedMs / 1_000 },
      ]);
      metrics.read('metersync_worker_polling', async () =>
        (await liveness.queues()).map(({ queue, polls }) => ({ value: polls ? 1 : 0, task_queue: queue })),
      );
    },
  };
}

type State = LabelOf<'metersync_warehouse_pool_connections'>;

function connections(warehouses: readonly Warehouse[]): Sample<'metersync_warehouse_pool_connections'>[] {
  const sum = (count: (pool: Warehouse['pool']) => number): number =>
    warehouses.reduce((total, { pool }) => total + count(pool), 0);
  const of = (state: string, value: number): { value: number } & Record<State, string> => ({ value, state });
  return [
    of(
      'idle',
      sum((pool) => pool.idleCount),
    ),
    of(
      'used',
      sum((pool) => pool.totalCount - pool.idleCount),
    ),
    of(
      'waiting',
      sum((pool) => pool.waitingCount),
    ),
  ];
}

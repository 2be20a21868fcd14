import { once } from 'node:events';
import { createServer } from 'node:net';
import type { RowsWritten } from '../activities/dependencies.ts';
import { limits } from '../contract/limits.ts';
import { monitorPolicy } from '../contract/retry-policy.ts';
import type { Warehouse } from '../db/connection/connect.ts';
import type { Recorded } from '../db/events/record.ts';
import type { LabelOf, Sample } from '../health/metrics.ts';
import type { Metrics } from '../health/registry.ts';
import { ask } from '../http/ask.ts';
import { type AnswerReason, answerStatus } from '../receiver/answers.ts';
import type { GroupCommit, GroupFigures } from '../receiver/group-commit.ts';
import type { ConfiguredSecrets } from '../receiver/secrets.ts';
import type { Receiver } from '../receiver/server.ts';
import type { ServiceClient } from '../service/client.ts';
import type { RequestFigures } from '../service/request.ts';
import { readVersion } from './process/version.ts';

interface Build {
  /** How many migrations this process knows; empty if it needs none. */
  readonly schema: string;
  /** The build id of its workers; empty before they run, and if there are none. */
  buildId(): string;
}

/** Measures what every process has: its parts, their version, and whether they are ready. */
export function observeProcess(metrics: Metrics, parts: readonly WatchedPart[], build: Build): void {
  const version = readVersion();
  metrics.read('metersync_build_info', () =>
    parts.map(({ name }) => ({
      value: 1,
      part: name,
      version,
      schema: name === 'worker' ? build.schema : '',
      build_id: name === 'worker' ? build.buildId() : '',
    })),
  );
  metrics.read('metersync_ready', () =>
    Promise.all(
      parts.map(async ({ name, ready }) => ({ value: (await ready()) === undefined ? 1 : 0, part: name })),
    ),
  );
}

interface ReceiverParts {
  readonly receiver: Receiver;
  readonly commit: GroupCommit;
  readonly secrets: ConfiguredSecrets;
  readonly ready: () => Promise<boolean>;
}

export interface ReceiverObserver {
  onAnswer(reason: AnswerReason, ms: number): void;
  onGroup(figures: GroupFigures): void;
  /** Reads the rest from the receiver's parts at each scrape. */
  watch(parts: ReceiverParts): void;
}

const results = ['durable', 'refused', 'unavailable'] as const;

/** Measures a receiver, and passes on its parts once it has begun. */
export function observeReceiver(metrics: Metrics, onBegun: (parts: ReceiverParts) => void): ReceiverObserver {
  const durations = metrics.histogram('metersync_receiver_answer_duration_seconds');
  const events = metrics.histogram('metersync_receiver_group_events');
  const starts = metrics.histogram('metersync_receiver_group_start_duration_seconds');
  const durationOf = Object.fromEntries(results.map((result) => [result, durations.labels(result)]));
  return {
    onAnswer(reason, ms) {
      const status = answerStatus[reason];
      durationOf[status === 204 ? 'durable' : status === 503 ? 'unavailable' : 'refused']?.observe(
        ms / 1_000,
      );
    },
    onGroup(figures) {
      const labels = { result: figures.durable ? 'durable' : 'unavailable' };
      events.observe(labels, figures.events);
      starts.observe(labels, figures.ms / 1_000);
    },
    watch(parts) {
      onBegun(parts);
      const { receiver, commit, secrets } = parts;
      metrics.read('metersync_receiver_answers_total', () =>
        Object.entries(receiver.counters).map(([reason, value]) => ({
          value,
          reason,
          code: String(answerStatus[reason as AnswerReason]),
        })),
      );
      metrics.read('metersync_receiver_waiting_events', () => [{ value: commit.waiting.events }]);
      metrics.read('metersync_receiver_waiting_limit_events', () => [{ value: limits.queueEventsMax }]);
      metrics.read('metersync_receiver_secrets_valid', () => [{ value: secrets.valid ? 1 : 0 }]);
    },
  };
}

export interface WorkerParts {
  readonly warehouses: readonly Warehouse[];
  readonly service: ServiceClient;
  /** The workers of the queues, each with whether it still runs. */
  readonly queues: readonly { readonly queue: string; runs(): boolean }[];
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
      const { warehouses, service } = parts;
      metrics.read('metersync_warehouse_pool_connections', () => connections(warehouses));
      metrics.read('metersync_service_concurrency', () => [{ value: service.pace().concurrency }]);
      metrics.read('metersync_service_gate_closed_seconds_total', () => [
        { value: service.pace().closedMs / 1_000 },
      ]);
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

/** Temporal's own metrics, which its native library serves only on the loopback address. */
export interface CoreMetrics {
  /** `127.0.0.1:<port>`, for `Runtime.install`. */
  readonly address: string;
  /** Reads the metrics in Prometheus' text format; undefined if that fails. */
  read(): Promise<string | undefined>;
}

/** A worker of a large deployment has some hundred kB of metrics. */
const metricsBytesMax = 16 * 1024 * 1024;

/** Finds a free port for the exporter. The exporter takes it when the runtime is installed. */
export async function placeCoreMetrics(): Promise<CoreMetrics> {
  const address = `127.0.0.1:${await freePort('127.0.0.1')}`;
  return {
    address,
    read: async () => {
      try {
        const { status, text, isWhole } = await ask(`http://${address}/metrics`, {
          withinMs: monitorPolicy.temporalMetricsWithinMs,
          bytesMax: metricsBytesMax,
        });
        return status === 200 && isWhole ? text : undefined;
      } catch {
        return undefined;
      }
    },
  };
}

/** Writes all metrics of a process that runs workers: metersync's own, then Temporal's. */
export const withCoreMetrics =
  (metrics: Metrics, core: Pick<CoreMetrics, 'read'>): (() => Promise<string>) =>
  async () =>
    `${await metrics.asText()}${(await core.read()) ?? ''}`;

/** Finds a free port, for a server whose address is needed before it listens. */
async function freePort(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  await once(server.close(), 'close');
  return port;
}

/** A part of this process whose health the private port answers for. */
export interface WatchedPart {
  readonly name: 'receiver' | 'worker' | 'console';
  /** Returns why the part needs a restart, if it does. This never depends on another system. */
  alive(): Promise<string | undefined>;
  /** Returns why the part cannot do its work now; undefined if it can. */
  ready(): Promise<string | undefined>;
}

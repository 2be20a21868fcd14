import { monitorPolicy } from '../../contract/retry-policy.ts';
import type { Metrics } from '../../health/registry.ts';
import { ask } from '../../http/ask.ts';
import { freePort } from '../process/free-port.ts';

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

import { monitorPolicy } from '../../contract/retry-policy.ts';
import type { Metrics } from '../../health/registry.ts';
import { freePort } from '../process/free-port.ts';

/** Temporal's own metrics, which its native library serves only on the loopback address. */
export interface CoreMetrics {
  /** `127.0.0.1:<port>`, for `Runtime.install`. */
  readonly address: string;
  /** Reads the metrics in Prometheus' text format; undefined if that fails. */
  text(): Promise<string | undefined>;
}

/** Finds a free port for the exporter. The exporter takes it when the runtime is installed. */
export async function placeCoreMetrics(): Promise<CoreMetrics> {
  const address = `127.0.0.1:${await freePort('127.0.0.1')}`;
  return {
    address,
    text: async () => {
      try {
        const answer = await fetch(`http://${address}/metrics`, {
          signal: AbortSignal.timeout(monitorPolicy.temporalMetricsWithinMs),
        });
        return answer.ok ? await answer.text() : undefined;
      } catch {
        return undefined;
      }
    },
  };
}

/** Writes all metrics of a process that runs workers: metersync's own, then Temporal's. */
export const withCoreMetrics =
  (metrics: Metrics, core: Pick<CoreMetrics, 'text'>): (() => Promise<string>) =>
  async () =>
    `${await metrics.text()}${(await core.text()) ?? ''}`;

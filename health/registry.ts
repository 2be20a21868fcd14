import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Health } from './measured.ts';
import {
  type LabelOf,
  type MetricName,
  type MetricOf,
  type MetricType,
  metricTypes,
  ofDeployment,
  type Sample,
} from './metrics.ts';

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

/**
 * Adds the metrics of a deployment. `read` remembers its result for some seconds, because each metric calls it,
 * and never rejects.
 */
export function observeDeployment(metrics: Metrics, read: () => Promise<Health>): void {
  const names = Object.keys(ofDeployment) as (keyof typeof ofDeployment)[];
  for (const name of names)
    metrics.read(name, async () => ofDeployment[name].read(await read()) as readonly Sample<typeof name>[]);
}

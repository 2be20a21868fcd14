import { type MetricType, metricTypes } from '../contract/metrics.ts';
import { generatedFrom } from './markdown.ts';

const parts: readonly (readonly [MetricType['of'], string])[] = [
  ['process', 'Every process'],
  ['receiver', 'Receiver'],
  ['worker', 'Worker'],
  ['warehouse', 'Warehouse'],
  ['temporal', 'Temporal'],
];

/** Makes docs/reference/metrics.md from the catalogue of metrics. */
export function metricsPage(): string {
  const sections = parts.map(([of, title]) => `## ${title}\n\n${listOf(of)}`);
  return `${generatedFrom('contract/metrics.ts')}
# Metrics

Each process serves \`/metrics\`, \`/healthz\` and \`/readyz\` on a private port (127.0.0.1:9464;
\`METRICS_HOST\`, \`METRICS_PORT\`). \`/metrics\` also holds Node's own metrics (\`process_*\`,
\`nodejs_*\`), a worker's those of Temporal (\`temporal_*\`). Gauges that answer whether are 1 or 0;
times are Unix times, and absent before the first.

- Scrape each process, never a balanced address.
- Every worker reports the warehouse and Temporal: ask for \`max by\`.
- A worker reads the warehouse at most every 10 s. While Postgres is away those metrics are absent.
- \`/healthz\` answers 503 when a worker stopped polling for three minutes, never for an outage of others.
  \`/readyz\` answers 503 during such an outage, and says of which.
- \`metersync healthcheck\` asks \`/healthz\` for a container; \`--ready\` asks \`/readyz\`.

${sections.join('\n\n')}
`;
}

function listOf(of: MetricType['of']): string {
  return Object.entries<MetricType>(metricTypes)
    .filter(([, type]) => type.of === of)
    .map(([name, { type, labels, help }]) => {
      const by = Object.entries(labels).map(([label, values]) => `; \`${label}\`: ${values}`);
      return `- \`${name}\` (${type}${by.join('')}): ${help}`;
    })
    .join('\n');
}

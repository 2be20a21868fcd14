import { type MetricType, metricTypes } from '../health/metrics.ts';
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
  return `${generatedFrom('health/metrics.ts')}
# Metrics

Each process serves \`/metrics\`, \`/healthz\` and \`/readyz\` on a private port (127.0.0.1:9464;
\`METRICS_HOST\`, \`METRICS_PORT\`). Node's own metrics (\`process_*\`, \`nodejs_*\`) are there too, and on
workers Temporal's (\`temporal_*\`). Gauges that answer a question are 1 for yes and 0 for no. Times are Unix
times.

- Scrape each process directly, not through a load balancer.
- Every worker reports the same about the warehouse and Temporal, so query it with \`max by\`.
- A worker reads the warehouse at most every 10 s. While Postgres or Temporal cannot be reached, its
  metrics are absent.
- \`/healthz\` answers 503 once the worker of a queue has stopped. \`/readyz\` also answers 503 while
  another server is down, which it names. \`metersync healthcheck\` requests \`/healthz\`, and with
  \`--ready\` \`/readyz\`.
- A metric without a type is a gauge. Labels, unless their metric says otherwise: ${[...commonLabels]
    .map(([label, values]) => `\`${label}\` (${values})`)
    .join(', ')}.

${sections.join('\n\n')}
`;
}

/**
 * The most frequent description of each label, if several metrics share it. It stands at the top of the page,
 * and only metrics whose label is described in another way repeat the label.
 */
const commonLabels: ReadonlyMap<string, string> = new Map(
  [
    ...Map.groupBy(
      Object.values<MetricType>(metricTypes).flatMap(({ labels }) => Object.entries(labels)),
      ([label]) => label,
    ),
  ].flatMap(([label, uses]) => {
    const [most] = [...Map.groupBy(uses, ([, values]) => values)].sort(([, a], [, b]) => b.length - a.length);
    return most !== undefined && most[1].length > 1 ? [[label, most[0]] as const] : [];
  }),
);

function listOf(of: MetricType['of']): string {
  return Object.entries<MetricType>(metricTypes)
    .filter(([, type]) => type.of === of)
    .map(([name, { type, labels, help }]) => {
      const names = Object.keys(labels).join(',');
      const own = Object.entries(labels)
        .filter(([label, values]) => commonLabels.get(label) !== values)
        .map(([label, values]) => ` \`${label}\`: ${values}.`);
      const kind = type === 'gauge' ? '' : ` (${type})`;
      return `- \`${name}${names === '' ? '' : `{${names}}`}\`${kind}: ${help}${own.join('')}`;
    })
    .join('\n');
}

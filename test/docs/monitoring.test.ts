import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readSettings } from '../../app/settings/settings.ts';
import { metricTypes } from '../../health/metrics.ts';

const deploy = join(import.meta.dirname, '../../deploy');
const read = (path: string) => parse(readFileSync(join(deploy, path), 'utf8'));

test.each(['overview', 'inside'])('the dashboard %s shows only processes of metersync', (name) => {
  const { templating, panels } = read(`grafana/dashboards/${name}.json`) as {
    templating: { list: { name: string; query: string; allValue?: string }[] };
    panels: { targets: { expr: string }[] }[];
  };
  const job = templating.list.find((variable) => variable.name === 'job');
  expect(job?.query).toBe('label_values(metersync_build_info, job)');
  expect(job).not.toHaveProperty('allValue');
  const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  expect(queries).not.toEqual([]);
  expect(queries.filter((query) => !/job=~"\$job\b/.test(query))).toEqual([]);
});

test.each(['overview', 'inside'])('the dashboard %s only queries metrics that exist', (name) => {
  const text = readFileSync(join(deploy, `grafana/dashboards/${name}.json`), 'utf8');
  const asked = [...text.matchAll(/\b(metersync_\w+?)(?:_bucket|_sum|_count)?\{job/g)].map(
    ([, metric]) => metric,
  );
  expect(asked).not.toEqual([]);
  expect(Object.keys(metricTypes)).toEqual(expect.arrayContaining(asked));
});

test("Prometheus scrapes the port of the processes, and loads metersync's rules", () => {
  const { scrape_configs, rule_files } = read('prometheus/prometheus.yml');
  expect(scrape_configs[0].dns_sd_configs[0].port).toBe(readSettings({}).metrics.port);
  expect(rule_files).toEqual(['rules.yml']);
});

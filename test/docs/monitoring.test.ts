import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readSettings } from '../../app/settings/settings.ts';

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

test("Prometheus scrapes the port of the processes, and loads metersync's rules", () => {
  const { scrape_configs, rule_files } = read('prometheus/prometheus.yml');
  expect(scrape_configs[0].dns_sd_configs[0].port).toBe(readSettings({}).metrics.port);
  expect(rule_files).toEqual(['rules.yml']);
});

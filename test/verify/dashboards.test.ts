import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readSettings } from '../../app/settings.ts';
import { dashboardJson } from '../../verify/dashboard-pages.ts';
import { type Dashboard, dashboards } from '../../verify/dashboards.ts';

const deploy = resolve(import.meta.dirname, '../../deploy');
const read = (path: string) => parse(readFileSync(join(deploy, path), 'utf8'));
const all = Object.entries<Dashboard>(dashboards);

test("each panel's title is a question, asked once", () => {
  const titles = all.flatMap(([, { panels }]) => panels.map(({ asks }) => asks));
  expect(titles.filter((title) => !title.endsWith('?'))).toEqual([]);
  expect(new Set(titles).size).toBe(titles.length);
});

test.each(all)('the panels of %s fill lines of 24 columns and do not overlap', (name, dashboard) => {
  const { panels } = JSON.parse(dashboardJson(name, dashboard)) as {
    panels: { gridPos: { x: number; y: number; w: number; h: number } }[];
  };
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
    expect(h).toBe(8);
    return Array.from({ length: w }, (_, at) => `${y} ${x + at}`);
  });
  expect(new Set(cells).size).toBe(cells.length);
  for (const cell of cells) expect(Number(cell.split(' ')[1])).toBeLessThan(24);
});

test.each(all)(
  'all jobs of %s are those of metersync, not of each program in Prometheus',
  (name, dashboard) => {
    const { templating } = JSON.parse(dashboardJson(name, dashboard)) as {
      templating: { list: { name: string; query: string; allValue?: string }[] };
    };
    const job = templating.list.find((variable) => variable.name === 'job');
    expect(job?.query).toBe('label_values(metersync_build_info, job)');
    expect(job).not.toHaveProperty('allValue');
  },
);

test('Prometheus scrapes the port that processes have, and loads our rules', () => {
  const { scrape_configs, rule_files } = read('prometheus/prometheus.yml');
  expect(scrape_configs[0].dns_sd_configs[0].port).toBe(readSettings({}).metrics.port);
  expect(rule_files).toEqual(['rules.yml']);
});

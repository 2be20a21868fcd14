import { expect, test } from 'vitest';
import { categories, drawChart, values } from '../../web/chart.ts';

const chart = (name: string): string =>
  drawChart({ xAxis: categories([name]), yAxis: values(), series: [{ type: 'bar', data: [1] }] }, 200, 400);

test('a drawing contains nothing that the content security policy of the console refuses', () => {
  const svg = chart('2026-01');
  expect(svg).toMatch(/^<svg [^>]*viewBox="0 0 400 200"/);
  expect(svg).toContain('fill="var(--series-1)"');
  expect(svg).not.toMatch(/<style|<script| style=| class=| on\w+=/);
});

test('a drawing escapes the names of customers', () => {
  const svg = chart('<script>alert(1)</script>" style="color:red');
  expect(svg).toContain('&lt;script&gt;');
  expect(svg).not.toContain('<script');
});

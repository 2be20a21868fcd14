import { expect, test } from 'vitest';
import type { Report } from '../../db/read/report.ts';
import { loadChart, reportPage } from '../../operations/report/page.ts';
import { amount, percent, reportText } from '../../operations/report/summary.ts';

const report: Report = {
  madeAt: '2026-04-10T00:00:00Z',
  company: { id: 'c', name: 'Acme' },
  counts: { companies: 1, meters: 1, bills: 5 },
  months: ['2026-01-01', '2026-02-01', '2026-03-01', '2026-04-01'],
  cost: [
    { month: '2026-01-01', currency: 'EUR', cost: '1.00' },
    { month: '2026-02-01', currency: 'CAD', cost: '2.00' },
    { month: '2026-02-01', currency: 'USD', cost: '3.00' },
    { month: '2026-03-01', currency: 'CAD', cost: '4.00' },
    { month: '2026-03-01', currency: 'USD', cost: '5.00' },
    { month: '2026-04-01', currency: 'GBP', cost: '6.00' },
    { month: '2026-04-01', currency: 'USD', cost: '7.00' },
  ],
  usage: [],
  undated: { cost: [], usage: [] },
  coverage: [],
  load: { meters: 0, metersOfAll: 1, hours: [] },
  timeZones: [],
  corrections: { byChange: [], byMonth: [], latest: [] },
  freshness: {
    connections: 0,
    late: 0,
    byCause: [],
    publishedUntil: null,
    collectedAt: null,
    appliedAt: null,
    pendingEvents: 0,
  },
};

test('the text has the cost of every currency, in the last month of each that has ended', () => {
  expect(reportText(report)).toContain(
    'cost: 6.00 GBP in 2026-04 so far, 4.00 CAD and 5.00 USD in 2026-03, 1.00 EUR in 2026-01',
  );
});

test('the page shows invisible characters of names as escapes, as the console does', async () => {
  const hostile = 'Acme \u202eevil\u200b';
  const page = await reportPage({
    ...report,
    company: { id: 'c', name: hostile },
    cost: [{ month: '2026-03-01', currency: 'U\u202eSD', cost: '1.00' }],
  });
  expect(page).toContain('<title>Energy report: Acme \\u202eevil\\u200b</title>');
  expect(page).toContain('<h1>Energy report: Acme \\u202eevil\\u200b</h1>');
  expect(page).not.toMatch(/[\u200b\u202e]/);
});

test('an amount that rounds to zero has no sign', () => {
  expect(['-0.001', '-0.005', '-1234.5', null].map((text) => amount(text))).toEqual([
    '0.00',
    '-0.01',
    '-1,234.50',
    '–',
  ]);
});

test('a share is rounded down, so that 100 % means all', () => {
  expect(['1.0000', '0.9999', '0.5800', '0.0004', null].map(percent)).toEqual([
    '100.0 %',
    '99.9 %',
    '58.0 %',
    '0.0 %',
    '–',
  ]);
});

test('the steps of the load of many meters are whole numbers that fit on a line', () => {
  const load = Array.from({ length: 168 }, (_, at) => ({
    weekday: 1 + Math.floor(at / 24),
    hour: at % 24,
    kw: String(at * 100),
  }));
  expect(loadChart(load).match(/[\d.,e+]+–[\d.,e+]+/g)).toEqual([
    '0–2,780',
    '2,780–5,570',
    '5,570–8,350',
    '8,350–11,100',
    '11,100–13,900',
    '13,900–16,700',
  ]);
});

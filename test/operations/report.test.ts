import { expect, test } from 'vitest';
import type { Report } from '../../db/read/report.ts';
import { loadChart, reportPage } from '../../operations/report/page.ts';
import { amount, percent, reportText } from '../../operations/report/summary.ts';

const month = (of: string) => `2026-0${of}-01`;
const none: Report = {
  madeAt: '2026-04-10T00:00:00Z',
  company: null,
  counts: { companies: 0, meters: 0, bills: 0 },
  months: [],
  cost: [],
  usage: [],
  undated: { cost: [], usage: [] },
  coverage: [],
  load: { meters: 0, metersOfAll: 0, hours: [] },
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
const kWh = { commodity: 'ELECTRICITY', units: 'kWh', meters: 1 };
const everything: Report = {
  ...none,
  company: { id: 'c', name: 'Acme \u202eevil\u200b' },
  counts: { companies: 1, meters: 2, bills: 5 },
  months: ['1', '2', '3', '4'].map(month),
  cost: [
    { month: month('1'), currency: 'EUR', cost: '1.00' },
    { month: month('2'), currency: 'CAD', cost: '2.00' },
    { month: month('3'), currency: 'CAD', cost: '4.00' },
    { month: month('3'), currency: 'USD', cost: '5.00' },
    { month: month('4'), currency: 'GBP', cost: '6.00' },
    { month: month('4'), currency: 'USD', cost: '7.00' },
  ],
  usage: [
    { ...kWh, month: month('1'), usage: '1000.5' },
    { ...kWh, month: month('2'), usage: null },
    { ...kWh, month: month('4'), usage: '3' },
  ],
  undated: {
    cost: [
      { currency: 'EUR', cost: '30.00', bills: 1 },
      { currency: null, cost: null, bills: 2 },
    ],
    usage: [
      { commodity: 'ELECTRICITY', units: 'kWh', usage: '7' },
      { commodity: null, units: 'cubic m', usage: '3' },
    ],
  },
  coverage: [
    { month: month('3'), bills: '0.9999', readings: '0.2333' },
    { month: month('4'), bills: null, readings: null },
  ],
  load: {
    meters: 1,
    metersOfAll: 2,
    hours: [
      { weekday: 1, hour: 0, kw: '1.5' },
      { weekday: 3, hour: 14, kw: '12.25' },
      { weekday: 7, hour: 23, kw: null },
    ],
  },
  timeZones: [
    { timeZone: 'America/Denver', source: 'site', sites: 2 },
    { timeZone: 'UTC', source: 'default', sites: 1 },
  ],
  corrections: {
    byChange: [
      { what: 'corrected', currency: 'USD', bills: 1, change: '5.00' },
      { what: 'moved', currency: 'USD', bills: 2, change: null },
    ],
    byMonth: ['1', '2', '3'].map((of) => ({ month: month(of), bills: 1 })),
    latest: [
      {
        billId: 'b-1',
        changedAt: '2026-03-02T01:02:03Z',
        provider: 'City Power',
        invoiceId: null,
        what: 'corrected',
        fields: ['cost', 'usage'],
        reason: null,
        change: '5.00',
        currency: 'U\u202eSD',
      },
    ],
  },
  freshness: {
    connections: 3,
    late: 2,
    byCause: [{ cause: 'your login', connections: 2 }],
    publishedUntil: '2026-03-31',
    collectedAt: '2026-04-09T00:00:00Z',
    appliedAt: '2026-04-09T00:01:00Z',
    pendingEvents: 4,
  },
} as Report;
const reports = { 'of an empty warehouse': none, 'of a company': everything };

test('the report of the command is as in the golden file', async () => {
  const texts = Object.entries(reports).map(([name, report]) =>
    [`# ${name}`, ...reportText(report)].join('\n'),
  );
  await expect(`${texts.join('\n\n')}\n`).toMatchFileSnapshot('golden/report.txt');
});

/** The texts of a page, an element a line; charts are left out. */
const textOf = (page: string): string =>
  page
    .replace(/<style>.*?<\/style>/gs, '')
    .replace(/<svg.*?<\/svg>/gs, '(chart)')
    .replace(/<\/t[dh]><t[dh][^>]*>/g, ' | ')
    .replace(/<[^>]+>/g, '\n')
    .replace(/\s*\n\s*/g, '\n');

test('the texts of the page are as in the golden file, with invisible characters as escapes', async () => {
  const pages = await Promise.all(
    Object.entries(reports).map(async ([name, report]) => `# ${name}${textOf(await reportPage(report))}`),
  );
  await expect(pages.join('\n')).toMatchFileSnapshot('golden/report-page.txt');
  expect(pages.join('')).not.toMatch(/[\u200b\u202e]/);
});

test('names from the service are text on the page, also in charts', async () => {
  const script = `<script>document.title='taken'</script><img src=x>`;
  const page = await reportPage({
    ...everything,
    company: { id: 'c', name: script },
    cost: everything.cost.map((row) => ({ ...row, currency: script })),
    usage: everything.usage.map((row) => ({ ...row, units: script, commodity: script })),
  });
  expect(page).not.toMatch(/<script|<img/);
  expect(page).toContain('&lt;script&gt;document.title=');
});

test('amounts that round to zero have no sign, and shares are rounded down, so that 100 % means all', () => {
  expect(['-0.001', '-0.005', '-1234.5', null].map((text) => amount(text))).toEqual([
    ...['0.00', '-0.01', '-1,234.50', '–'],
  ]);
  expect(['1.0000', '0.9999', '0.0004', null].map(percent)).toEqual(['100.0 %', '99.9 %', '0.0 %', '–']);
});

test('the steps of the load of many meters are whole numbers that fit on a line', () => {
  const load = Array.from({ length: 168 }, (_, at) => ({
    weekday: 1 + Math.floor(at / 24),
    hour: at % 24,
    kw: String(at * 100),
  }));
  expect(loadChart(load).match(/[\d.,e+]+–[\d.,e+]+/g)).toEqual([
    ...['0–2,780', '2,780–5,570', '5,570–8,350', '8,350–11,100', '11,100–13,900', '13,900–16,700'],
  ]);
});

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sql } from 'drizzle-orm';
import { beforeAll, describe, expect, test } from 'vitest';
import { readReport } from '../../db/read/report.ts';
import { keepMonths } from '../../db/watch/months.ts';
import { BilledCompany } from '../support/bills.ts';
import { expectGoodPage, openBrowser, watchErrors } from '../support/browser.ts';
import { runCommand } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const script = `<script>document.title='taken'</script><img src=x onerror="document.title='taken'">`;

const [warehouse, folder, browser] = await Promise.all([
  forFile(createWarehouse()),
  forFile(temporaryFolder()),
  forFile(openBrowser()),
]);
let company: BilledCompany;
const [electricity, gas] = [randomUUID(), randomUUID()];

/** Fills in a connection, a week of readings, and half a year of bills of two meters in two currencies. */
async function fill(): Promise<void> {
  company = new BilledCompany(warehouse);
  await company.add({ [electricity]: {}, [gas]: { datasourceType: 'GAS' } });
  const months = ['01-01/01-31', '02-01/02-28', '03-01/03-31', '04-01/04-30', '05-01/05-31', '06-01/06-30'];
  const more = { invoiceId: script };
  for (const [place, month] of months.entries()) {
    const [start = '', end = ''] = month.split('/').map((day) => `2026-${day}`);
    const bill = (meterId: string, cost: string, currency: string, usage: string, units: string) => ({
      billed: place,
      cost,
      currency,
      usage: [{ meterId, start, end, usage, units }],
    });
    const [id = ''] = await company.bill([
      { ...bill(electricity, `${100 + place}.25`, 'USD', `${1000 + 10 * place}.5`, 'kWh'), more },
      bill(gas, `${50 + place}.10`, 'EUR', `${300 - 10 * place}`, 'cubic m'),
    ]);
    if (place === 5)
      await company.bill([{ ...bill(electricity, '110.25', 'USD', '1050.5', 'kWh'), id, billed: 99, more }]);
  }
  await warehouse.db.execute(sql`select metersync.ensure_interval_month('2026-06-01')`);
  await warehouse.db.execute(sql`
    insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, quality, synced_at)
    select ${electricity}, timestamptz '2026-06-01 00:00Z' + n * interval '15 minutes', 900, 'kWh',
      case when n = 2 * 96 + 4 * 14 then 10 else 1 + (n % 96) / 96.0 end, 'ACTUAL', now()
    from generate_series(0, 7 * 96 - 1) n`);
  const connection = {
    id: randomUUID(),
    status: 'MFA_TOKEN_EXPIRED',
    datasource: 'City Power',
    accounts: [{ id: 'a', accountNumber: '1', meters: [electricity] }],
  };
  await writeRecords(warehouse, 'connections', [connection], { companyId: company.id });
  await keepMonths(warehouse.db, { budgetSeconds: 60 });
}

describe('a warehouse with bills and readings', () => {
  beforeAll(fill);

  test('has the figures of the bills and the readings', async () => {
    const report = await readReport(warehouse.db, company.id);
    const cost = (currency: string) =>
      report.cost.filter((row) => row.currency === currency).map((row) => row.cost);
    expect(cost('USD')).toEqual(['100.25', '101.25', '102.25', '103.25', '104.25', '110.25']);
    expect(cost('EUR')).toEqual(['50.10', '51.10', '52.10', '53.10', '54.10', '55.10']);
    const usage = report.usage.filter(({ commodity }) => commodity === 'ELECTRICITY');
    expect(usage.map((row) => [row.month, Number(row.usage)]).at(-1)).toEqual(['2026-06-01', 1050.5]);
    expect(report.coverage.map((row) => Number(row.bills))).toEqual([1, 1, 1, 1, 1, 1]);
    expect(report.coverage.at(-1)?.readings).toBe((7 / 30).toFixed(4));
    const highest = report.load.hours.reduce((a, b) => (Number(b.kw) > Number(a.kw) ? b : a));
    // The hour of Wednesday 14:00 has a reading of 10 kWh in one quarter, and three other readings.
    const others = [57, 58, 59].map((quarter) => 1 + quarter / 96);
    const mean = [10, ...others].reduce((sum, kwh) => sum + kwh * 4, 0) / 4;
    expect([highest.weekday, highest.hour, Number(highest.kw)]).toEqual([3, 14, Number(mean.toFixed(3))]);
    expect(report.corrections.byChange).toEqual([
      { what: 'corrected', currency: 'USD', bills: 1, change: '5.00' },
    ]);
    expect(report.corrections.latest[0]?.fields).toEqual(['cost']);
    expect(report.freshness).toMatchObject({ connections: 1, late: 1, publishedUntil: '2026-06-30' });
  });

  test('is reported on one accessible page without script or network, with names as text', async () => {
    const path = join(folder.path, 'report.html');
    const env = { DATABASE_URL: warehouse.url, METERSYNC_DIR: folder.path };
    const ran = await runCommand(['report', '--company', company.id, '--html', path], { env });
    expect(ran, ran.stderr).toMatchObject({ status: 0, stdout: '' });
    const page = readFileSync(path, 'utf8');
    expect(page.match(/(?:src|href)\s*=\s*"(?!#)[^"]*"|url\((?!#)|@import/g)).toBeNull();

    const person = await browser.person({ offline: true });
    const shown = await person.newPage();
    const errors = watchErrors(shown);
    const asked: string[] = [];
    shown.on('request', (request) => asked.push(request.url()));
    await shown.goto(pathToFileURL(path).href);
    expect(await shown.title()).toBe('Energy report: Acme');
    expect(await shown.locator('h2').allInnerTexts()).toEqual([
      'Cost by month',
      'Usage by month: electricity, kWh',
      'Usage by month: gas, cubic m',
      'Load profile',
      'Coverage',
      'Corrections',
      'Freshness',
    ]);
    // One chart for each currency and unit, because no axis has two. Corrections of one month have no chart.
    expect(await shown.locator('.chart svg').count()).toBe(6);
    const ofCost = shown.locator('.chart').first().locator('svg');
    expect(await ofCost.getByText('EUR').or(ofCost.getByText('USD')).allTextContents()).toEqual([
      'EUR',
      'USD',
    ]);
    const [cost = ''] = await shown.locator('.figure').allInnerTexts();
    expect(cost).toBe('55.10 EUR and 110.25 USD in 2026-06');
    expect(await shown.locator('body').textContent()).toContain(script);
    await expectGoodPage(shown, 'report');
    expect({ title: await shown.title(), errors, asked }).toEqual({
      title: 'Energy report: Acme',
      errors: [],
      asked: [pathToFileURL(path).href],
    });
    await person.close();
  });

  test('counts bills and usage without dates separately, because they belong to no month', async () => {
    const own = new BilledCompany(warehouse);
    const [meter, another] = [randomUUID(), randomUUID()];
    await own.add({ [meter]: {}, [another]: { datasourceType: 'GAS' } });
    const without = (meterId: string, usage: string, units: string) => ({
      meterId,
      start: null,
      end: null,
      usage,
      units,
    });
    await own.bill([
      {
        billed: 1,
        cost: '10.00',
        usage: [{ meterId: meter, start: '2026-01-01', end: '2026-01-31', usage: '5' }],
      },
      { billed: 2, cost: '20.00', usage: [without(meter, '7', 'kWh'), without(another, '3', 'cubic m')] },
      { billed: 3, cost: '30.00', currency: 'EUR', usage: [] },
    ]);
    await keepMonths(warehouse.db, { budgetSeconds: 60 });
    const report = await readReport(warehouse.db, own.id);
    expect(report.undated.cost).toEqual([
      { currency: 'EUR', cost: '30.00', bills: 1 },
      { currency: 'USD', cost: '20.00', bills: 1 },
    ]);
    expect(report.undated.usage.map(({ units, usage }) => [units, Number(usage)]).toSorted()).toEqual([
      ['cubic m', 3],
      ['kWh', 7],
    ]);
  });

  test('has every month from the first bill to the running month, and the time zones of the sites', async () => {
    const own = new BilledCompany(warehouse);
    const meter = randomUUID();
    await own.add({ [meter]: {} });
    const today = new Date().toISOString().slice(0, 10);
    const month = (before: number) => {
      const first = new Date(`${today.slice(0, 7)}-01T00:00:00Z`);
      first.setUTCMonth(first.getUTCMonth() - before);
      return first.toISOString().slice(0, 10);
    };
    const of = (billed: number, start: string, cost: string) => ({
      billed,
      cost,
      usage: [{ meterId: meter, start, end: start, usage: '5' }],
      more: { startDate: start, endDate: start },
    });
    await own.bill([
      of(1, month(5), '50.00'),
      of(2, month(2), '20.00'),
      of(3, month(0), '1.00'),
      // A bill with a mistyped year removes no month from the axis.
      of(4, '9998-01-01', '7.00'),
    ]);
    await keepMonths(warehouse.db, { budgetSeconds: 60 });
    const report = await readReport(warehouse.db, own.id);
    expect(report.months).toEqual([5, 4, 3, 2, 1, 0].map(month));
    expect(report.cost.map((row) => [row.month, row.cost])).toEqual([
      [month(5), '50.00'],
      [month(2), '20.00'],
      [month(0), '1.00'],
    ]);
    expect(report.timeZones).toMatchObject([{ source: 'default', sites: 1 }]);
    await warehouse.db.execute(
      sql`insert into ops.site_overrides (site_id, time_zone) values (${own.siteId}::uuid, 'America/Denver')`,
    );
    const zoned = await readReport(warehouse.db, own.id);
    expect(zoned.timeZones).toMatchObject([{ timeZone: 'America/Denver', source: 'site', sites: 1 }]);
  });

  test('has the load of meters with nearly all hours of the week, and says how many meters', async () => {
    const own = new BilledCompany(warehouse);
    const [whole, few] = [randomUUID(), randomUUID()];
    await own.add({ [whole]: {}, [few]: {} });
    await warehouse.db.execute(sql`select metersync.ensure_interval_month('2026-06-01')`);
    await warehouse.db.execute(sql`
      insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, synced_at)
      select ${whole}, timestamptz '2026-06-01 00:00Z' + n * interval '1 hour', 3600, 'kWh', 1 + n / 1000.0, now()
      from generate_series(0, 7 * 24 - 1) n
      union all
      select ${few}, timestamptz '2026-06-03 19:00Z' + n * interval '15 minutes', 900, 'kWh', 100, now()
      from generate_series(0, 3) n`);
    const report = await readReport(warehouse.db, own.id);
    expect(report.load).toMatchObject({ meters: 1, metersOfAll: 2 });
    expect(report.load.hours.find(({ weekday, hour }) => weekday === 3 && hour === 19)?.kw).toBe('1.067');
  });
});

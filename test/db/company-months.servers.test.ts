import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { readCompanyMonths } from '../../db/read/company-months.ts';
import { countOpenByWeek } from '../../db/read/issues.ts';
import { keepMonths } from '../../db/watch/months.ts';
import { BilledCompany } from '../support/bills.ts';
import { forFile } from '../support/for-file.ts';
import { fillTrouble, hostile } from '../support/trouble.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());
const trouble = await fillTrouble(warehouse);
const now = '2026-11-27T00:00:00Z';

test('the months of a company have exact sums and say which sites are billed', async () => {
  const read = await readCompanyMonths(warehouse.db, trouble.companies[0], now);
  expect(read.months).toHaveLength(14);
  expect([read.months[0], read.months.at(-1)]).toEqual(['2025-06-01', '2026-07-01']);
  // Two sites with 1000.25 * 4 each. In the fifth month one of the sites has no bill.
  expect(read.usage.slice(3, 5).map(({ usage }) => usage)).toEqual(['8002.00', '5001.25']);
  expect(read.cost.slice(3, 5)).toEqual([
    { month: '2025-09-01', currency: 'USD', cost: '1680.4200' },
    { month: '2025-10-01', currency: 'USD', cost: '1050.2625' },
  ]);
  const ofHostile = read.calendar.sites.find(({ site }) => site === hostile);
  expect(read.calendar.months).toEqual(read.months);
  expect(ofHostile?.marks.slice(3, 6)).toEqual(['billed', 'missing', 'part']);
});

test('only the requested number of latest months is read', async () => {
  const { months, cost } = await readCompanyMonths(warehouse.db, trouble.companies[0], now, 3);
  expect(months).toEqual(['2026-05-01', '2026-06-01', '2026-07-01']);
  expect(cost).toHaveLength(3);
});

test('months in the future, which come from mistyped dates, do not replace past months', async () => {
  const { months } = await readCompanyMonths(warehouse.db, trouble.companies[0], '2026-03-31T23:00:00Z', 2);
  expect(months).toEqual(['2026-02-01', '2026-03-01']);
});

test('the calendar says which bills were corrected, and which are late', async () => {
  const company = new BilledCompany(warehouse);
  const meterId = randomUUID();
  await company.add({ [meterId]: {} });
  const bill = (id: string, billed: number, start: string, end: string, usage = '1') => ({
    id,
    billed,
    usage: [{ meterId, start, end, usage }],
    more: { billDate: end },
  });
  const [january, february] = [randomUUID(), randomUUID()];
  await company.bill([
    bill(january, 1, '2024-01-01', '2024-01-31'),
    bill(february, 2, '2024-02-01', '2024-02-29'),
    bill(randomUUID(), 3, '2024-03-01', '2024-03-31'),
  ]);
  await company.bill([bill(february, 4, '2024-02-01', '2024-02-29', '2')]);
  await keepMonths(warehouse.db, { budgetSeconds: 60 });
  const read = await readCompanyMonths(warehouse.db, company.id, '2024-05-10T00:00:00Z');
  expect(read.months).toEqual(['2024-01-01', '2024-02-01', '2024-03-01']);
  expect(read.calendar).toEqual({
    months: ['2024-01-01', '2024-02-01', '2024-03-01', '2024-04-01', '2024-05-01'],
    sites: [{ site: 'Main street', marks: ['billed', 'corrected', 'billed', 'late', 'late'] }],
  });
});

test('a company without bills has no months', async () => {
  expect(await readCompanyMonths(warehouse.db, trouble.companies[1], now)).toEqual({
    months: [],
    cost: [],
    usage: [],
    calendar: { months: [], sites: [] },
  });
});

test('open issues are counted by check and week, and all earlier issues are one count', async () => {
  await warehouse.pool.query(
    "update ops.data_issues set opened_at = now() - interval '300 days' where check_name = 'late_bill'",
  );
  const open = await countOpenByWeek(warehouse.db, 12);
  expect(open).toHaveLength(4);
  expect(open[0]).toEqual({ checkName: 'late_bill', week: null, open: 1 });
  expect(new Date(`${open[1]?.week}T00:00:00Z`).getUTCDay()).toBe(1);
});

import { expect, test } from 'vitest';
import { readCompanyMonths } from '../../db/read/company-months.ts';
import { countOpenByWeek } from '../../db/read/issues.ts';
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
  // Both sites, 1000.25 * 4 each; in the fifth month one of them has no bill.
  expect(read.usage.slice(3, 5).map(({ usage }) => usage)).toEqual(['8002.00', '5001.25']);
  expect(read.cost.slice(3, 5)).toEqual([
    { month: '2025-09-01', currency: 'USD', cost: '1680.4200' },
    { month: '2025-10-01', currency: 'USD', cost: '1050.2625' },
  ]);
  const ofHostile = read.billed.filter(({ site }) => site === hostile);
  expect(ofHostile.slice(3, 6).map(({ days, covered }) => [days, covered])).toEqual([
    [30, 30],
    [30, 0],
    [30, 12],
  ]);
});

test('reads no more than the latest months', async () => {
  const { months, cost } = await readCompanyMonths(warehouse.db, trouble.companies[0], now, 3);
  expect(months).toEqual(['2026-05-01', '2026-06-01', '2026-07-01']);
  expect(cost).toHaveLength(3);
});

test('months in the future, which come from mistyped dates, do not replace past months', async () => {
  const { months } = await readCompanyMonths(warehouse.db, trouble.companies[0], '2026-03-31T23:00:00Z', 2);
  expect(months).toEqual(['2026-02-01', '2026-03-01']);
});

test('a company without bills has no months', async () => {
  expect(await readCompanyMonths(warehouse.db, trouble.companies[1], now)).toEqual({
    months: [],
    cost: [],
    usage: [],
    billed: [],
  });
});

test('open issues are counted by check and week, and earlier issues together', async () => {
  await warehouse.pool.query(
    "update ops.data_issues set opened_at = now() - interval '300 days' where check_name = 'late_bill'",
  );
  const open = await countOpenByWeek(warehouse.db, 12);
  expect(open).toHaveLength(4);
  expect(open[0]).toEqual({ checkName: 'late_bill', week: null, open: 1 });
  expect(new Date(`${open[1]?.week}T00:00:00Z`).getUTCDay()).toBe(1);
});

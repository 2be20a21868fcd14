import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BilledCompany } from '../support/bills.ts';
import { forFile } from '../support/for-file.ts';
import { blocksTouched } from '../support/plans.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

async function newCompany(meters: Readonly<Record<string, object>> = {}): Promise<BilledCompany> {
  const company = new BilledCompany(warehouse);
  await company.add(meters);
  return company;
}

describe('cost', () => {
  const january = { start: '2026-01-01', end: '2026-01-31' };
  const lines = [
    { totalCharge: '10.00', quantity: '30', quantityUnits: 'kWh', electricityChargeType: 'SUPPLY' },
    { totalCharge: '20.00', quantity: '2', quantityUnits: 'thm (US)', gasChargeType: 'DELIVERY' },
    { totalCharge: '3.01', chargeType: 'FIXED' },
    { totalCharge: '99.00', chargeType: 'FIXED', billingPeriod: 'PREVIOUS' },
  ];

  test('of a bill over several meters is divided by its lines and sums to the bill', async () => {
    const company = await newCompany({ gas: { datasourceType: 'GAS' }, one: {}, two: {} });
    const electric = { datasourceType: 'ELECTRICITY' };
    const usage = [
      { meterId: 'one', ...january, usage: '20', more: electric },
      { meterId: 'two', ...january, usage: '10', more: electric },
      { meterId: 'gas', ...january, usage: '2', units: 'thm (US)', more: { datasourceType: 'GAS' } },
    ];
    await company.bill([{ billed: 1, cost: '33.01', usage, more: { lineItems: lines } }]);
    const costs = await company.rows('bill_costs', 'meter_id');
    expect(costs.map((row) => [row.meter_id, row.cost, row.allocation_method])).toEqual([
      ['gas', '21.00', 'line_items'],
      ['one', '7.67', 'line_items'],
      ['two', '4.34', 'line_items'],
    ]);
  });

  describe('of a line is divided', () => {
    const [electric, gas] = [{ datasourceType: 'ELECTRICITY' }, { datasourceType: 'GAS' }];
    const of = (meterId: string | null, usage: string, units = 'kWh', more: object = electric) => ({
      meterId,
      ...january,
      usage,
      units,
      more,
    });
    const byUse = { quantity: '9', quantityUnits: 'kWh' };
    const supply = { ...byUse, electricityChargeType: 'SUPPLY' };
    const demand = { ...byUse, electricityIsDemand: true };
    const hours = ['1', '2', '3'].map((usage) => of('b', usage));
    test.each([
      ['equally among meters if it is a fee', {}, [of('a', '1'), ...hours], ['50.00', '50.00']],
      ['only among known meters', {}, [of('a', '1'), of('b', '1'), of(null, '8')], ['50.00', '50.00']],
      ['by use, converted to one unit', supply, [of('a', '1', 'MWh'), of('b', '1000')], ['50.00', '50.00']],
      ['by use, not by power', supply, [of('a', '1'), of('a', '9', 'KW'), of('b', '1')], ['50.00', '50.00']],
      [
        'by use of meters that are objects',
        supply,
        ['a', 'b'].map((id, at) => of(id, `${1 + 2 * at}`, 'kWh', { ...electric, meter: { id } })),
        ['25.00', '75.00'],
      ],
      ['by use of meters that were not read yet', supply, [of('x', '1'), of('y', '3')], ['25.00', '75.00']],
      [
        'by use in the unit of the line',
        byUse,
        [of('a', '2'), ...hours, of('g', '1', 'CCF', gas)],
        ['25.00', '75.00', '0.00'],
      ],
      [
        'equally among meters with demand',
        demand,
        [
          of('a', '1', 'kWh', { billedDemand: '5' }),
          of('b', '1', 'kWh', { billedDemand: '7' }),
          of('b', '7', 'KW', { billedDemand: '7' }),
          of('g', '1', 'CCF', gas),
        ],
        ['50.00', '50.00', '0.00'],
      ],
      [
        'equally if no meter has a part',
        supply,
        [of('g', '1', 'CCF', gas), of('h', '2', 'CCF', gas)],
        ['50.00', '50.00'],
      ],
    ])('%s', async (_how, line, usage, parts) => {
      const company = await newCompany({ a: {}, b: {}, g: gas, h: gas });
      const lineItems = [{ totalCharge: '40.00', ...line }];
      await company.bill([{ billed: 1, cost: '100.00', usage, more: { lineItems } }]);
      const costs = await company.rows('bill_costs', 'meter_id');
      expect(costs.map((row) => row.cost)).toEqual(parts);
      expect(costs[0]?.allocation_method).toBe('line_items');
    });
  });

  describe('of a demand line is divided', () => {
    const ids = { a: randomUUID(), b: randomUUID(), c: randomUUID() };
    // All bills list the same rows of usage, which belong to the newest of them.
    let billed = 0;
    const of = (
      meter: keyof typeof ids,
      demandUsage: number,
      demandUsageUnits = 'kW',
      more: object = {},
    ) => ({
      ...{ demandUsage, demandUsageUnits, usageDataIds: [ids[meter]], ...more },
    });
    test.each([
      [
        'by demand, converted to one unit',
        [of('a', 60), of('b', 0.03, 'MW'), of('c', 10), of('c', 5)],
        {},
        ['60', '30', '10'],
      ],
      ['only among meters with demand', [of('a', 3), of('b', 1), of('c', 0)], {}, ['75', '25', '0']],
      [
        'by kVA if a meter has no kW',
        [of('a', 9), of('a', 3, 'kVA'), of('b', 1, 'kVA')],
        {},
        ['75', '25', '0'],
      ],
      ['equally if units differ', [of('a', 9), of('b', 1, 'kVA')], {}, ['50', '50', '0']],
      ['equally if one demand has no unit', [of('a', 9)], { billedDemand: '1' }, ['50', '50', '0']],
      ['without capacity', [of('a', 1), of('b', 9, 'kW', { demandType: 'CONTRACT' })], {}, ['100', '0', '0']],
    ])('%s', async (_how, demandMeters, ofB, parts) => {
      const company = await newCompany({ a: {}, b: {}, c: {} });
      const usage = (['a', 'b', 'c'] as const).map((meterId) => ({
        ...{ meterId, ...january, usage: '1', more: { id: ids[meterId], ...(meterId === 'b' ? ofB : {}) } },
      }));
      const lineItems = [{ totalCharge: '40.00', quantity: '9', electricityIsDemand: true }];
      billed += 1;
      await company.bill([{ billed, cost: '100.00', usage, more: { lineItems, demandMeters } }]);
      const costs = await company.rows('bill_costs', 'meter_id');
      expect(costs.map((row) => row.cost)).toEqual(parts.map((part) => `${part}.00`));
    });
  });

  test('is computed with less than ten times the blocks for a company with eight times the bills', async () => {
    const usage = ['a', 'b', 'c'].map((meterId) => ({ meterId, ...january, usage: '1' }));
    const lineItems = lines.slice(0, 4);
    // The test uses its own warehouse, which has no statistics.
    const young = await createWarehouse();
    onTestFinished(() => young.drop());
    const blocksOf = async (bills: number): Promise<number> => {
      const company = new BilledCompany(young);
      await company.add({ a: {}, b: {}, c: {} });
      const each = Array.from({ length: bills }, (_, at) => ({
        ...{ billed: at, cost: '33.01', usage, more: { lineItems } },
      }));
      await company.bill(each);
      return await blocksTouched(
        young,
        sql`select * from metersync.monthly_cost_now where company_id = ${company.id}::uuid`,
      );
    };
    const [few, many] = [await blocksOf(20), await blocksOf(160)];
    expect(many / few).toBeLessThan(10);
  });

  test('of a bill with a date of another century is in the month of the last day of the bill', async () => {
    const company = await newCompany();
    const of = (start: string, end: string) => ({ meterId: 'm', start, end, usage: '1' });
    await company.bill([
      { billed: 1, cost: '9.00', usage: [of('2026-01-01', '2026-01-31'), of('0202-01-01', '0202-01-31')] },
    ]);
    expect(await company.rows('monthly_cost', 'month')).toMatchObject([
      { month: '2026-01-01', cost: '9.00' },
    ]);
  });

  test('of a bill whose usage has no end is spread over the days of the bill', async () => {
    const company = await newCompany({ known: {}, m: {} });
    const of = (meterId: string, end: string) => ({ meterId, start: '2026-01-17', end, usage: '1' });
    const more = { startDate: '2026-01-17', endDate: '2026-02-15' };
    await company.bill([
      { billed: 1, cost: '60.00', usage: [of('m', '2026-01-17'), of('known', '2026-01-20')], more },
    ]);
    const months = await company.rows('monthly_cost', 'meter_id, month');
    expect(months.map((row) => [row.meter_id, row.month, row.cost, row.days_covered])).toEqual([
      ['known', '2026-01-01', '30.00', 4],
      ['m', '2026-01-01', '15.00', 15],
      ['m', '2026-02-01', '15.00', 15],
    ]);
  });
});

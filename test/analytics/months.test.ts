import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BilledCompany } from '../support/bills.ts';
import { createWarehouse } from '../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
beforeAll(async () => {
  warehouse = await createWarehouse();
});
afterAll(() => warehouse.drop());

const seed = Number(process.env.SEED ?? 20_261_122);

/** Days since 1 January 2024. */
const day = (days: number) => new Date(Date.UTC(2024, 0, 1 + days)).toISOString().slice(0, 10);
const amount = fc
  .tuple(fc.integer({ min: -10_000_000, max: 10_000_000 }), fc.integer({ min: 0, max: 9 }))
  .map(([whole, places]) =>
    places === 0
      ? `${whole}`
      : `${whole}.${String(Math.abs(whole * 7919))
          .padStart(places, '0')
          .slice(-places)}`,
  );

const bill = fc.record({
  meter: fc.integer({ min: 0, max: 2 }),
  start: fc.integer({ min: 0, max: 400 }),
  days: fc.integer({ min: -3, max: 120 }),
  usage: amount,
  cost: amount,
  currency: fc.constantFrom('USD', 'CAD'),
  units: fc.constantFrom('kWh', 'MWh', 'thm (US)', 'CCF', 'teu'),
  exclusion: fc.boolean(),
  replacedBy: fc.option(fc.nat(11), { nil: undefined }),
});

interface Day {
  readonly covered: boolean;
  readonly doubly: boolean;
}

/** Days of a meter and unit that bills are for, one by one, by the rule that a shared day belongs to the second. */
function daysOf(
  periods: readonly { document: string; first: number; last: number; next: number | undefined }[],
) {
  const days = new Map<number, Set<string>>();
  for (const { document, first, last, next } of periods) {
    for (let at = first; at <= last; at++) {
      if (at === last && last > first && next === last) continue;
      days.set(at, (days.get(at) ?? new Set()).add(document));
    }
  }
  return new Map(
    [...days].map(([at, documents]): [number, Day] => [at, { covered: true, doubly: documents.size > 1 }]),
  );
}

test(`months add up to the bills exactly, and cover the days that the bills are for, for any set of bills (seed ${seed})`, {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(bill, { minLength: 1, maxLength: 12 }), async (bills) => {
      const company = new BilledCompany(warehouse);
      const meters = [0, 1, 2].map((meter) => `${company.id}/${meter}`);
      await company.add(Object.fromEntries(meters.map((id) => [id, {}])));
      const ids = bills.map(() => randomUUID());
      await company.bill(
        bills.map((one, at) => ({
          ...{ id: ids[at] ?? '', billed: at, cost: one.cost, currency: one.currency },
          usage: [
            {
              meterId: meters[one.meter] ?? '',
              start: day(one.start),
              end: day(one.start + one.days),
              ...{ usage: one.usage, units: one.units, more: { exclusion: one.exclusion } },
            },
          ],
          more: { revisedDocumentId: one.replacedBy === undefined ? null : (ids[one.replacedBy] ?? null) },
        })),
      );
      const sums = await warehouse.db.execute<Record<string, boolean>>(sql`
        with usage as (
          select u.meter_id, coalesce(f.standard_units, u.usage_units) as units,
            sum(u.usage * coalesce(f.factor, 1) * case when (u.raw ->> 'exclusion')::boolean then -1 else 1 end) as billed
          from utility.usage_data u left join ops.unit_factors f on f.units = u.usage_units
          where u.document_id in (select bill_id from analytics.bills where company_id = ${company.id}::uuid) group by 1, 2
        ), cost as (
          select raw ->> 'chargesUnits' as currency, sum((raw ->> 'currentCharges')::numeric) as billed
          from utility.documents
          where id in (select bill_id from analytics.bills where company_id = ${company.id}::uuid) group by 1
        )
        select (select bool_and(u.billed = m.billed) from usage u left join (
            select meter_id, units, sum(billed_usage) as billed from analytics.monthly_usage
            where company_id = ${company.id}::uuid group by 1, 2) m using (meter_id, units)) as usage,
          (select bool_and(c.billed = m.billed) from cost c left join (
            select currency, sum(cost) as billed from analytics.monthly_cost
            where company_id = ${company.id}::uuid group by 1) m using (currency)) as cost,
          (select count(*) from usage) = (select count(distinct (meter_id, units)) from analytics.monthly_usage
            where company_id = ${company.id}::uuid) as all_there`);
      const [added] = sums.rows;
      if (added?.usage !== null) expect(added).toEqual({ usage: true, cost: true, all_there: true });

      const effective = new Set((await company.rows('bills', 'bill_id')).map((row) => row.bill_id));
      await compareDays(company, bills, ids, meters, effective);
    }),
    { seed, numRuns: 60 },
  );
});

type Bill = typeof bill extends fc.Arbitrary<infer T> ? T : never;

async function compareDays(
  company: BilledCompany,
  bills: readonly Bill[],
  ids: readonly string[],
  meters: readonly string[],
  effective: ReadonlySet<unknown>,
): Promise<void> {
  const rows = await company.rows('monthly_usage', 'meter_id, units, month');
  for (const [meter, meterId] of meters.entries()) {
    const periods = bills.flatMap((one, at) => {
      const [first, last] = [
        Math.min(one.start, one.start + one.days),
        Math.max(one.start, one.start + one.days),
      ];
      const document = ids[at] ?? '';
      return one.meter === meter && effective.has(document)
        ? [{ document, first, last, units: one.units }]
        : [];
    });
    const withNext = periods.map((one) => ({
      ...one,
      next: periods
        .map(({ first }) => first)
        .filter((first) => first > one.first)
        .sort((a, b) => a - b)[0],
    }));
    const units = { energy: ['kWh', 'MWh', 'thm (US)'], volume: ['CCF'], teu: ['teu'] };
    const standard = { energy: 'kWh', volume: 'cubic m', teu: 'teu' };
    for (const dimension of ['energy', 'volume', 'teu'] as const) {
      const days = daysOf(withNext.filter((one) => units[dimension].includes(one.units)));
      const expected = new Map<string, { covered: number; doubly: number }>();
      for (const [at, { doubly }] of days) {
        const month = `${day(at).slice(0, 7)}-01`;
        const so = expected.get(month) ?? { covered: 0, doubly: 0 };
        expected.set(month, { covered: so.covered + 1, doubly: so.doubly + Number(doubly) });
      }
      const shown = rows.filter((row) => row.meter_id === meterId && row.units === standard[dimension]);
      const told = shown.filter((row) => row.days_covered !== 0);
      expect(told.map((row) => [row.month, row.days_covered, row.days_overlapped])).toEqual(
        [...expected].sort().map(([month, { covered, doubly }]) => [month, covered, doubly]),
      );
      for (const row of shown.filter((one) => one.days_covered === 0)) {
        expect([row.usage, row.billed_usage, row.coverage]).toEqual([null, null, '0.0000']);
      }
    }
  }
}

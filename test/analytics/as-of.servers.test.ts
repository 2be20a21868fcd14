import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BillHistory, effective, step } from '../support/bill-histories.ts';
import { cases } from '../support/cases.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

test('a bill that was tombstoned and is read again counts in the state of the last read', async () => {
  const life = new BillHistory(warehouse);
  await life.company.add({});
  const write = { do: 'write', document: 0, start: 1, days: 1, link: null } as const;
  const gone = { do: 'delete', document: 0 } as const;
  for (const one of [
    { ...write, cost: 1 },
    gone,
    { ...write, cost: 2 },
    { ...gone, do: 'undelete' as const },
  ]) {
    await life.take(one);
    const costs = (await life.bills(sql`analytics.bills`)).map(({ cost }) => cost);
    expect(costs).toEqual([...effective(life.known).values()].map(String));
  }
});

const seed = Number(process.env.SEED ?? 20_261_124);

test(`bills_as_of returns the bills of any time of any history (seed ${seed})`, {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const life = new BillHistory(warehouse);
      await life.company.add({});
      const seen: {
        at: string;
        present: Record<string, unknown>[];
        counts: Map<number, number>;
        knowsAny: boolean;
      }[] = [];
      const look = async () => {
        const present = await life.bills(sql`analytics.bills`);
        const knowsAny = life.known.size > 0;
        seen.push({ at: await life.now(), present, counts: effective(life.known), knowsAny });
      };
      await look();
      for (const one of steps) {
        await life.take(one);
        await look();
      }
      for (const { at, present, counts, knowsAny } of seen) {
        if (!knowsAny && life.known.size > 0) {
          const early = life.bills(sql`analytics.bills_as_of(${at}::timestamptz, ${life.company.id}::uuid)`);
          await expect(early).rejects.toMatchObject({
            cause: { message: expect.stringMatching(/^the warehouse knows no bills before /) },
          });
          continue;
        }
        const asOf = await life.bills(sql`analytics.bills_as_of(${at}::timestamptz)`);
        expect(asOf).toEqual(present);
        const alone = sql`analytics.bills_as_of(${at}::timestamptz, ${life.company.id}::uuid)`;
        expect(await life.bills(alone)).toEqual(present);
        const costs = [...counts].map(([document, cost]) => [life.ids[document], `${cost}`]);
        expect(asOf.map((bill) => [bill.bill_id, bill.cost])).toEqual(costs.sort());
      }
    }),
    { seed, numRuns: cases(8, 20) },
  );
});

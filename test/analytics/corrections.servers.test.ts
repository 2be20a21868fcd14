import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BillHistory, type Step, step } from '../support/bill-histories.ts';
import { BilledCompany, type BillSaid } from '../support/bills.ts';
import { cases } from '../support/cases.ts';
import { forFile } from '../support/for-file.ts';
import { writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const seed = Number(process.env.SEED ?? 20_261_125);

async function newCompany(): Promise<BilledCompany> {
  const company = new BilledCompany(warehouse);
  await company.add({});
  return company;
}

const bill = (id: string, billed: number, cost: string, more: object = {}): BillSaid => ({
  id,
  billed,
  cost,
  usage: [],
  more: { accountNumber: 'A-1', utilityCompany: 'Light & Co', invoiceId: 'I-1', ...more },
});

const setDeleted = (id: string, deleted: boolean) =>
  warehouse.db.execute(sql`update utility.documents
    set deleted_at = ${deleted ? sql`now()` : sql`null`}, deleted_reason = ${deleted ? 'listed' : null}
    where id = ${id}::uuid`);

/** Summarises the corrections of a company. */
const correctionsOf = async (company: BilledCompany) =>
  (await company.rows('bill_corrections', 'changed_at, currency, cost_after')).map((row) => [
    row.change,
    row.currency,
    row.cost_before,
    row.cost_after,
    row.cost_change,
    row.reason,
  ]);

test('a correction is one row, whichever fields changed', async () => {
  const company = await newCompany();
  const id = randomUUID();
  await company.bill([bill(id, 1, '100.00', { totalCharges: '100.00', dueDate: '2026-01-01' })]);
  await company.bill([bill(id, 2, '90.50', { totalCharges: '90.50', dueDate: '2026-01-02' })]);
  await company.bill([bill(id, 3, '90.50', { totalCharges: '90.50', dueDate: '2026-01-03' })]);
  expect(await company.rows('bill_corrections', 'changed_at')).toMatchObject([
    {
      bill_id: id,
      site_id: null,
      account_number: 'A-1',
      provider: 'Light & Co',
      invoice_id: 'I-1',
      change: 'corrected',
      fields: ['cost', 'total_charges', 'due_date'],
      currency: 'USD',
      cost_before: '100.00',
      cost_after: '90.50',
      cost_change: '-9.50',
      reason: null,
    },
    { change: 'corrected', fields: ['due_date'], cost_change: '0.00' },
  ]);
});

test('a bill whose currency changed has one row for each currency', async () => {
  const company = await newCompany();
  const id = randomUUID();
  await company.bill([bill(id, 1, '100.00')]);
  await company.bill([{ ...bill(id, 2, '90.00'), currency: 'EUR' }]);
  expect(await correctionsOf(company)).toEqual([
    ['corrected', 'EUR', '0', '90.00', '90.00', null],
    ['corrected', 'USD', '100.00', '0', '-100.00', null],
  ]);
});

test('a deletion removes the cost of a bill from all sums, and the undo of the deletion restores the cost', async () => {
  const company = await newCompany();
  const id = randomUUID();
  await company.bill([bill(id, 1, '100.00')]);
  await setDeleted(id, true);
  await setDeleted(id, false);
  expect(await correctionsOf(company)).toEqual([
    ['deleted', 'USD', '100.00', '0', '-100.00', 'deleted: listed'],
    ['restored', 'USD', '0', '100.00', '100.00', 'deletion undone'],
  ]);
});

test('a superseded bill takes its cost out of the sums, and counts again once its successor is deleted', async () => {
  const company = await newCompany();
  const [old, next] = [randomUUID(), randomUUID()];
  await company.bill([bill(old, 1, '100.00')]);
  await company.bill([bill(next, 2, '80.00')]);
  await company.bill([bill(old, 3, '100.00', { revisedDocumentId: next })]);
  await setDeleted(next, true);
  expect(await correctionsOf(company)).toEqual([
    ['superseded', 'USD', '100.00', '0', '-100.00', `superseded by ${next}`],
    ['deleted', 'USD', '80.00', '0', '-80.00', 'deleted: listed'],
    ['restored', 'USD', '0', '100.00', '100.00', 'superseding bill gone'],
  ]);
  expect(await company.rows('bill_corrections', 'changed_at, cost_after')).toMatchObject([
    { bill_id: old, fields: ['revised_document_id'] },
    { bill_id: next, fields: ['deleted_at'] },
    { bill_id: old, fields: [] },
  ]);
});

test('a record that looks different in another version of the API is not a correction', async () => {
  const company = await newCompany();
  const id = randomUUID();
  const read = (apiVersion: string, updated: string, currentCharges: string) =>
    writeRecords(
      warehouse,
      'documents',
      [{ id, created: '2025-01-01T00:00:00', updated, company: company.id, currentCharges }],
      { companyId: company.id, apiVersion, readAt: `2026-06-0${++reads}T00:00:00Z` },
    );
  let reads = 0;
  await read('v2', '2025-01-01T00:00:00', '10.00');
  await read('v2.2', '2025-01-01T00:00:00', '10.50');
  expect(await correctionsOf(company)).toEqual([]);
  await read('v2.2', '2025-02-01T00:00:00', '12.00');
  expect(await correctionsOf(company)).toEqual([['corrected', null, '10.50', '12.00', '1.50', null]]);
});

const sumByCurrency = (rows: readonly Record<string, unknown>[], column: string): Map<unknown, number> => {
  const sums = new Map<unknown, number>();
  for (const row of rows) sums.set(row.currency, (sums.get(row.currency) ?? 0) + Number(row[column] ?? 0));
  return sums;
};

/** A history with every kind of change. */
const everyChange: Step[] = [
  { do: 'write', document: 0, cost: 100, start: 1, days: 10, link: null },
  { do: 'write', document: 0, cost: 200, start: 1, days: 10, link: null },
  { do: 'write', document: 1, cost: 300, start: 1, days: 10, link: 0 },
  { do: 'delete', document: 1 },
  { do: 'delete', document: 0 },
];

test(`corrections and new bills explain the difference between any two times (seed ${seed})`, {
  timeout: 120_000,
}, async () => {
  const changesSeen = new Set<unknown>();
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 14 }), async (steps) => {
      const life = new BillHistory(warehouse);
      await life.company.add({});
      const seen: { at: string; sums: Map<unknown, number> }[] = [];
      const look = async () =>
        seen.push({
          at: await life.now(),
          sums: sumByCurrency(await life.bills(sql`analytics.bills`), 'cost'),
        });
      await look();
      for (const one of steps) {
        await life.take(one);
        await look();
      }
      // A row for each correction, and for each bill when it was first read. `looks` counts the looks before it.
      const { rows: changes } = await warehouse.db.execute<{ change: string; looks: number }>(sql`
        select change, currency, cost_change,
          width_bucket(changed_at, ${sql.param(seen.map(({ at }) => at))}::timestamptz[]) as looks
        from (
          select change, currency, cost_change, changed_at from analytics.bill_corrections
          where company_id = ${life.company.id}::uuid
          union all
          select 'new', b.currency, b.cost, first.at
          from (
            select id, min(at) as at
            from (
              select id, valid_from as at from history.documents where raw is not null and valid_from < valid_to
              union all
              select d.id, coalesce(
                  (select max(valid_to) from history.documents h where h.id = d.id), first_synced_at)
              from utility.documents d where raw is not null
            ) read
            group by id
          ) first
            join utility.documents d using (id)
            cross join analytics.bills_as_of(first.at, d.company_id) b
          where d.company_id = ${life.company.id}::uuid and b.bill_id = d.id
        ) explained`);
      for (const { change } of changes) changesSeen.add(change);
      for (const [at, from] of seen.entries()) {
        for (const [later, to] of seen.entries()) {
          if (later <= at) continue;
          const between = changes.filter(({ looks }) => looks > at && looks <= later);
          const explained = sumByCurrency(between, 'cost_change');
          for (const currency of ['USD', 'EUR'])
            expect(explained.get(currency) ?? 0).toBe(
              (to.sums.get(currency) ?? 0) - (from.sums.get(currency) ?? 0),
            );
        }
      }
    }),
    { seed, numRuns: cases(10, 25), examples: [[everyChange]] },
  );
  expect([...changesSeen].sort()).toEqual(['corrected', 'deleted', 'new', 'restored', 'superseded']);
});

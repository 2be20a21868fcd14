import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { companiesMeant, findByName } from '../../db/read/find.ts';
import { BilledCompany } from '../support/bills.ts';
import { createWarehouse } from '../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
beforeAll(async () => {
  warehouse = await createWarehouse();
});
afterAll(() => warehouse.drop());

test('finds a bill by the number of its invoice or account through an index', async () => {
  const company = new BilledCompany(warehouse);
  const [id] = await company.bill([
    { billed: 1, usage: [], more: { invoiceId: 'INV-7', accountNumber: 'A-7', utilityCompany: 'Power' } },
    { billed: 2, usage: [], more: { invoiceId: 'INV-8', accountNumber: 'A-8' } },
  ]);
  const found = await warehouse.db.transaction(async (tx) => {
    // Otherwise Postgres scans a table with two bills.
    await tx.execute(sql`set local enable_seqscan = off`);
    const answers = [await findByName(tx, 'INV-7'), await findByName(tx, 'A-7')];
    await tx.execute(sql`select pg_stat_force_next_flush()`);
    return answers;
  });
  const bill = { kind: 'document', id, name: 'Power, INV-7', companyId: company.id, company: null };
  expect(found).toEqual([[bill], [bill]]);
  const { rows } = await warehouse.db.execute(
    sql`select idx_scan::int as scans from pg_stat_user_indexes where indexrelname = 'documents_numbers'`,
  );
  expect(rows).toEqual([{ scans: 2 }]);
});

test('finds the bills of an account by the number that its meters carry', async () => {
  const company = new BilledCompany(warehouse);
  const identifiers = ['ACCOUNT', 'METER'].map((name) => ({ name, value: `${name[0]}-9` }));
  await company.add({ m: { identifiers }, other: {} });
  const usage = (meterId: string) => ({ meterId, start: '2026-01-01', end: '2026-01-31', usage: '1' });
  const [id] = await company.bill([
    { billed: 1, usage: [usage('m'), usage('m')], more: { invoiceId: 'INV-9' } },
    { billed: 2, usage: [usage('other')] },
  ]);
  const of = { company: 'Acme', companyId: company.id };
  const meter = { kind: 'meter', id: 'm', name: 'A-9 M-9', ...of };
  expect(await findByName(warehouse.db, 'A-9')).toEqual([
    meter,
    { kind: 'document', id, name: 'INV-9', ...of },
  ]);
  expect(await findByName(warehouse.db, 'M-9')).toEqual([meter]);
});

test('finds the companies that a text may mean, the company with exactly this id or name first', async () => {
  const [plain, ltd, nameless] = [randomUUID(), randomUUID(), randomUUID()];
  await warehouse.db.execute(sql`
    insert into utility.companies (id, raw, synced_at)
    values
      (${plain}, '{"name": "Zinc 100% & Co"}', now()),
      (${ltd}, '{"name": "Zinc 100% & Co Ltd", "externalId": "zinc"}', now()),
      (${nameless}, '{"externalId": "C-1"}', now())`);
  const meant = async (given: string) =>
    (await companiesMeant(warehouse.db, given)).map(({ id, isExact }) => [id, isExact]);
  expect(await meant('zinc 100% & co')).toEqual([
    [plain, true],
    [ltd, false],
  ]);
  expect(await meant('zinc')).toEqual([
    [ltd, true],
    [plain, false],
  ]);
  expect(await meant('C-1')).toEqual([[nameless, true]]);
  expect(await meant(plain.toUpperCase())).toEqual([[plain, true]]);
  expect(await meant('1_0%')).toEqual([]);
});

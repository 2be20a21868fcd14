import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { recordEvents } from '../../db/events/record.ts';
import { BilledCompany, type BillSaid } from '../support/bills.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

async function newCompany(meters: Readonly<Record<string, object>> = {}): Promise<BilledCompany> {
  const company = new BilledCompany(warehouse);
  await company.add(meters);
  return company;
}

const bill = (billed: number, revisedDocumentId: string | null = null, id = randomUUID()): BillSaid => ({
  id,
  billed,
  cost: `${billed}.00`,
  usage: [],
  more: { revisedDocumentId, startDate: '2026-01-01', endDate: '2026-01-31', accountNumber: 'A-1' },
});
const ids = (rows: readonly Record<string, unknown>[]) => rows.map((row) => row.bill_id).sort();

describe('bills that count', () => {
  test('include only the last bill of a chain of links', async () => {
    const company = await newCompany();
    const [a, b, c] = [randomUUID(), randomUUID(), randomUUID()];
    await company.bill([bill(1, b, a), bill(2, c, b), bill(3, null, c)]);
    expect(ids(await company.rows('bills', 'bill_id'))).toEqual([c]);
    const all = await company.rows('bills_all', 'created');
    expect(all).toMatchObject([
      { bill_id: a, is_effective: false, reason: 'superseded', superseded_by: c },
      { bill_id: b, is_effective: false, reason: 'superseded', superseded_by: c },
      { bill_id: c, is_effective: true, reason: null, superseded_by: null },
    ]);
  });

  test('include a superseded bill again when the link to its successor is cleared', async () => {
    const company = await newCompany();
    const [a, b] = [randomUUID(), randomUUID()];
    await company.bill([bill(1, b, a), bill(2, null, b)]);
    await company.bill([{ ...bill(1, null, a), billed: 3 }]);
    expect(ids(await company.rows('bills', 'bill_id'))).toEqual([a, b].sort());
  });

  test('do not include a deleted bill, but its predecessor or its successor instead', async () => {
    const company = await newCompany();
    const [a, b, c] = [randomUUID(), randomUUID(), randomUUID()];
    await company.bill([bill(1, b, a), bill(2, null, b)]);
    const deletion = delivery(
      documentEvent('deleted', b, '2026-06-01T00:00:00', { company: { id: company.id } }),
    );
    await recordEvents(warehouse.db, [deletion]);
    expect(await company.rows('bills_all', 'created')).toMatchObject([
      { bill_id: a, is_effective: true },
      { bill_id: b, is_effective: false, reason: 'deleted' },
    ]);
    await warehouse.db.execute(
      sql`update utility.documents set raw = jsonb_set(raw, '{revisedDocumentId}', to_jsonb(${c}::text)) where id = ${b}::uuid`,
    );
    await company.bill([bill(4, null, c)]);
    expect(ids(await company.rows('bills', 'bill_id'))).toEqual([c]);
  });

  test('do not include a bill that is superseded by a bill that was not read yet', async () => {
    const company = await newCompany();
    const unseen = randomUUID();
    await company.bill([bill(1, unseen)]);
    expect(await company.rows('bills_all', 'created')).toMatchObject([
      { is_effective: false, superseded_by: unseen },
    ]);
  });

  test('include the newest bill of a ring of links, and no bill that leads into the ring', async () => {
    const company = await newCompany();
    const [a, b, c, d] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    await company.bill([bill(1, b, a), bill(3, c, b), bill(2, b, c), bill(4, d, d)]);
    expect(ids(await company.rows('bills', 'bill_id'))).toEqual([b, d].sort());
  });

  test('can be read with odd values in any field', async () => {
    const company = await newCompany();
    const odd = {
      startDate: '2026-02-30',
      endDate: { day: 1 },
      billDate: 'soon',
      currentCharges: 'much',
      totalCharges: 7.5,
      lineItems: ['free', { totalCharge: [] }],
      isFlagged: 'yes',
      revisedDocumentId: 5,
    };
    const usage = { meterId: 'm', start: '0001-01-01', end: '9999-12-31', usage: '1' };
    await company.bill([{ billed: 1, usage: [usage], more: odd }]);
    expect(await company.rows('bills', 'bill_id')).toMatchObject([
      { cost: '7.5', cost_source: 'total_charges', boundary_rule: 'one_day', is_flagged: null },
    ]);
    expect(await company.rows('bill_line_items', 'seq')).toMatchObject([
      { amount: null },
      { amount: null, is_current: true },
    ]);
    expect(await company.rows('monthly_cost', 'month')).toMatchObject([{ month: '9999-12-01', cost: '7.5' }]);
  });
});

describe('a bill that says nothing about itself', () => {
  const january = { meterId: 'm', start: '2026-01-01', end: '2026-01-31', usage: '500' };

  test.each([
    [[true], true],
    [[false, true], true],
    [[false, undefined], false],
    [[undefined], null],
    [['maybe'], null],
  ])('is estimated as its usage says: %j means %s', async (said, expected) => {
    const company = await newCompany();
    const usage = said.map((isEstimated) => ({ ...january, more: { isEstimated } }));
    const ids = await company.bill([
      { billed: 1, usage },
      { billed: 2, usage: [] },
    ]);
    // The usage of the second bill is only listed as usage, and not on its document.
    const listed = usage.map(({ more }) => ({ ...more, id: randomUUID(), document: { id: ids[1] } }));
    const readAt = new Date().toISOString();
    await writeRecords(warehouse, 'usageData', listed, { companyId: company.id, readAt });
    expect(await company.rows('bills', 'created')).toMatchObject(
      ids.map((id) => ({ bill_id: id, is_estimated: expected })),
    );
  });

  test('is estimated as of a time if its document said so then', async () => {
    const company = await newCompany();
    const id = randomUUID();
    for (const isEstimated of [true, false]) {
      const usageData = [{ usage: '500', usageUnits: 'kWh', isEstimated }];
      await company.bill([{ id, billed: isEstimated ? 1 : 2, usage: [], more: { usageData } }]);
    }
    expect(await company.rows('bills', 'created')).toMatchObject([{ is_estimated: false }]);
    expect(await company.rows('bill_corrections', 'changed_at')).toMatchObject([
      { fields: ['is_estimated'] },
    ]);
  });

  test('has the account of its usage, by which bills are neighbours', async () => {
    const company = await newCompany();
    const identifiers = ['B', 'A'].map((value) => ({ rawName: 'Account Number', name: 'ACCOUNT', value }));
    const meterNumber = { rawName: 'Meter No.', name: 'METER', value: '1' };
    const of = (billed: number, start: string, end: string) => ({
      billed,
      usage: [{ ...january, start, end, more: { identifiers: [meterNumber, ...identifiers] } }],
    });
    await company.bill([of(1, '2026-01-01', '2026-02-01'), of(2, '2026-02-01', '2026-02-28')]);
    expect(await company.rows('bills', 'created')).toMatchObject([
      { account_number: 'A', last_day: '2026-01-31', boundary_rule: 'shared_day_to_next' },
      { account_number: 'A', last_day: '2026-02-28' },
    ]);
  });
});

test('a line of a bill has the commodity of its charge, or electricity if it is for demand or has a time of use', async () => {
  const company = await newCompany();
  const none = { electricityChargeType: null, gasChargeType: '', electricityIsDemand: false };
  const lineItems = [
    { ...none, electricityChargeType: 'SUPPLY' },
    { ...none, gasChargeType: 'SUPPLY', electricityTimeOfUse: 'PEAK' },
    { ...none, chargeType: 'TAX' },
    { ...none, electricityIsDemand: 'true' },
    { ...none, electricityTimeOfUse: 'PEAK' },
  ];
  await company.bill([{ billed: 1, usage: [], more: { lineItems } }]);
  const lines = await company.rows('bill_line_items', 'seq');
  expect(lines.map((row) => [row.commodity, row.is_demand])).toEqual([
    ['ELECTRICITY', false],
    ['GAS', false],
    [null, false],
    ['ELECTRICITY', true],
    ['ELECTRICITY', false],
  ]);
});

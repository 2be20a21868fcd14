import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { surroundings } from '../../db/hot/surroundings.ts';
import { forFile } from '../support/for-file.ts';
import { writeRecords } from '../support/pages.ts';
import { connectExplained } from '../support/plans.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

test('the list of companies is read while there is a live site that is only known from an event', async () => {
  const { db } = warehouse;
  const [companyId, site] = [randomUUID(), randomUUID()];
  await writeRecords(warehouse, 'companies', [{ id: companyId, name: 'Acme' }]);
  const needsCompanies = async () => (await surroundings(db, 'documents', companyId, [])).companies;
  expect(await needsCompanies()).toBe(false);
  await db.execute(sql`
    insert into utility.sites (id, company_id, name) values (${site}::uuid, ${companyId}::uuid, 'Plant')`);
  expect(await needsCompanies()).toBe(true);
  await db.execute(sql`
    update utility.sites set deleted_at = clock_timestamp(), deleted_reason = 'absent' where id = ${site}::uuid`);
  expect(await needsCompanies()).toBe(false);
});

/** Adds usage of meters to a company, either live or tombstoned. */
const addUsage = async (companyId: string, meterIds: readonly (string | null)[], deleted = false) => {
  await warehouse.db.execute(sql`
    insert into utility.usage_data (id, company_id, raw, absent_since, absent_by)
    select gen_random_uuid(), ${companyId}::uuid, jsonb_build_object('meter', meter_id),
      case when ${deleted} then now() end, case when ${deleted} then 'absent' end
    from jsonb_array_elements_text(${JSON.stringify(meterIds)}::jsonb) meter_id`);
};

test('the meters of a company are read while its live usage names a meter without a row', async () => {
  const { db } = warehouse;
  const [first = '', companyId = '', last = ''] = [randomUUID(), randomUUID(), randomUUID()].sort();
  await writeRecords(warehouse, 'meters', [{ id: 'b' }, { id: 'd' }], { companyId });
  const needsMeters = async () => (await surroundings(db, 'documents', companyId, [])).meters;
  await addUsage(companyId, ['b', 'b', 'd', 'd', null, null]);
  await addUsage(companyId, ['a', 'c', 'e'], true);
  for (const other of [first, last]) await addUsage(other, ['a', 'c', 'e', null]);
  expect(await needsMeters()).toBe(false);
  for (const unread of ['a', 'c', 'e']) {
    await addUsage(companyId, [unread]);
    expect(await needsMeters()).toBe(true);
    await writeRecords(warehouse, 'meters', [{ id: unread }], { companyId });
    expect(await needsMeters()).toBe(false);
  }
});

test('looking for unknown meters does not cost more if there is much usage of the same meters', async () => {
  const companyId = randomUUID();
  await writeRecords(warehouse, 'meters', [{ id: 'x' }, { id: 'y' }], { companyId });
  const explained = connectExplained(warehouse.url);
  const blocks = async () => {
    await surroundings(explained.db, 'documents', companyId, []);
    const ran = await explained.plansOf(() => surroundings(explained.db, 'documents', companyId, []));
    return ran.reduce((sum, { blocks }) => sum + blocks, 0);
  };
  const add = async (rows: number) => {
    await addUsage(
      companyId,
      Array.from({ length: rows }, (_, at) => [null, 'x', 'y'][at % 3] ?? null),
    );
    await warehouse.db.execute(sql`analyze utility.usage_data`);
  };
  await add(300);
  const few = await blocks();
  await add(9_000);
  expect(await blocks()).toBeLessThan(few + 20);
  await explained.close();
});

import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { unknownNeighbours } from '../../../db/events/neighbours.ts';
import { forFile } from '../../support/for-file.ts';
import { writeRecords } from '../../support/pages.ts';
import { connectExplained } from '../../support/plans.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

/** Adds a read document of a company, and returns its id. */
async function addDocument(companyId: string, record: object = {}): Promise<string> {
  const id = randomUUID();
  const updated = '2026-03-01T00:00:00Z';
  await writeRecords(warehouse, 'documents', [{ id, company: { id: companyId }, updated, ...record }], {
    companyId,
  });
  return id;
}

/** Adds usage of meters to a document, either live or tombstoned. */
const addUsage = async (documentId: string, meterIds: readonly (string | null)[], deleted = false) => {
  await warehouse.db.execute(sql`
    insert into utility.usage_data (id, document_id, raw, absent_since, absent_by)
    select gen_random_uuid(), ${documentId}::uuid,
      jsonb_build_object('meter', meter_id, 'site', 's', 'datasourceType', 'ELECTRICITY'),
      case when ${deleted} then now() end, case when ${deleted} then 'absent' end
    from jsonb_array_elements_text(${JSON.stringify(meterIds)}::jsonb) meter_id`);
};

const neighbours = (companyId: string, ...ids: string[]) =>
  unknownNeighbours(warehouse.db, 'documents', companyId, ids);

test('a company without a row, or without a run, is unknown once the service showed a record of it', async () => {
  const [companyId, other] = [randomUUID(), randomUUID()];
  expect(await neighbours(companyId, randomUUID())).toMatchObject({ companies: [] });
  const document = await addDocument(companyId);
  expect(await neighbours(companyId, document)).toMatchObject({ companies: [companyId] });
  // An event may name another company than the record that it announces.
  expect(await neighbours(other, document)).toMatchObject({ companies: [companyId] });
  await warehouse.db.execute(sql`insert into utility.companies (id) values (${companyId}::uuid)`);
  expect(await neighbours(other, document)).toMatchObject({ companies: [companyId], owners: [companyId] });
  await warehouse.db.execute(
    sql`insert into metersync.runs (run_id, company_id, resource, state)
      values (gen_random_uuid(), ${companyId}::uuid, 'documents', 'running')`,
  );
  expect(await neighbours(other, document)).toMatchObject({ companies: [] });
  await warehouse.db.execute(sql`delete from metersync.runs`);
  await writeRecords(warehouse, 'companies', [{ id: companyId, name: 'Acme' }]);
  expect(await neighbours(other, document)).toMatchObject({ companies: [] });
  await warehouse.db.execute(sql`update utility.companies set absent_since = clock_timestamp(), absent_by = 'absent'
    where id = ${companyId}::uuid`);
  expect(await neighbours(companyId, document)).toMatchObject({ companies: [] });
});

test('a site is unknown while it has no row, or only the tombstone of a site that was never read', async () => {
  const [companyId, site] = [randomUUID(), randomUUID()];
  const document = await addDocument(companyId, { site: { id: site } });
  const isUnknown = async () => (await neighbours(companyId, document)).sites;
  expect(await isUnknown()).toBe(true);
  await warehouse.db.execute(sql`
    insert into utility.sites (id, company_id, name) values (${site}::uuid, ${companyId}::uuid, 'Plant')`);
  expect(await isUnknown()).toBe(false);
  await warehouse.db.execute(sql`
    update utility.sites set absent_since = clock_timestamp(), absent_by = 'absent' where id = ${site}::uuid`);
  expect(await isUnknown()).toBe(true);
  await warehouse.db.execute(sql`update utility.sites set raw = '{}' where id = ${site}::uuid`);
  expect(await isUnknown()).toBe(false);
});

test('a meter is unknown while live usage of the documents names it and it has no row that agrees', async () => {
  const companyId = randomUUID();
  const [document, other] = [await addDocument(companyId), await addDocument(companyId)];
  const isUnknown = async () => (await neighbours(companyId, document)).meters;
  const addMeter = (id: string, site = 's', datasourceType = 'ELECTRICITY') =>
    writeRecords(warehouse, 'meters', [{ id, site, datasourceType }], { companyId });
  await addMeter('b');
  await addUsage(document, ['b', 'b', null]);
  await addUsage(document, ['a', 'c'], true);
  await addUsage(other, ['a', 'c', null]);
  expect(await isUnknown()).toBe(false);
  for (const unread of ['a', 'c']) {
    await addUsage(document, [unread]);
    expect(await isUnknown()).toBe(true);
    await addMeter(unread);
    expect(await isUnknown()).toBe(false);
  }
  await addMeter('b', 's', 'WATER');
  expect(await isUnknown()).toBe(true);
});

test('looking for unknown meters costs no more if the company has much other usage', async () => {
  const companyId = randomUUID();
  await writeRecords(warehouse, 'meters', [{ id: 'x' }, { id: 'y' }], { companyId });
  const [document, other] = [await addDocument(companyId), await addDocument(companyId)];
  await addUsage(document, ['x', 'y', null]);
  const explained = connectExplained(warehouse.url);
  const ask = () => unknownNeighbours(explained.db, 'documents', companyId, [document]);
  const blocks = async () => {
    await ask();
    const ran = await explained.plansOf(ask);
    return ran.reduce((sum, { blocks }) => sum + blocks, 0);
  };
  const add = async (rows: number) => {
    const meters = Array.from({ length: rows }, (_, at) => [null, 'x', 'y'][at % 3] ?? null);
    await addUsage(other, meters);
    await warehouse.db.execute(sql`analyze utility.usage_data`);
  };
  await add(300);
  const few = await blocks();
  await add(9_000);
  expect(await blocks()).toBeLessThan(few + 20);
  await explained.close();
});

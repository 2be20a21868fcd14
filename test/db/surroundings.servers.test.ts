import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { unreadNeighbours } from '../../db/catch-up/surroundings.ts';
import { writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
beforeAll(async () => {
  warehouse = await createWarehouse();
});
afterAll(() => warehouse.drop());

test('a site known from an event alone has the list of companies read, until it is tombstoned', async () => {
  const { db } = warehouse;
  const [companyId, site] = [randomUUID(), randomUUID()];
  await writeRecords(warehouse, 'companies', [{ id: companyId, name: 'Acme' }]);
  const needsCompanies = async () => (await unreadNeighbours(db, companyId, [])).companies;
  expect(await needsCompanies()).toBe(false);
  await db.execute(sql`
    insert into utility.sites (id, company_id, name) values (${site}::uuid, ${companyId}::uuid, 'Plant')`);
  expect(await needsCompanies()).toBe(true);
  await db.execute(sql`
    update utility.sites set deleted_at = clock_timestamp(), deleted_reason = 'absent' where id = ${site}::uuid`);
  expect(await needsCompanies()).toBe(false);
});

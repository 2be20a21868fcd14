import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { analyseYoung } from '../../db/records/write-page.ts';
import { createWarehouse } from '../support/warehouse.ts';

async function youngWarehouse() {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const { db } = warehouse;
  // Otherwise autovacuum might analyse the table.
  await db.execute(sql`alter table utility.documents set (autovacuum_enabled = off)`);
  const rows = async () => {
    const found = await db.execute<{ rows: number }>(
      sql`select reltuples::int as rows from pg_class where oid = 'utility.documents'::regclass`,
    );
    return found.rows[0]?.rows;
  };
  const add = async (count: number) => {
    await db.execute(
      sql`insert into utility.documents (id) select gen_random_uuid() from generate_series(1, ${count}::int)`,
    );
    await analyseYoung(warehouse, 'documents', count);
  };
  return { warehouse, rows, add };
}

test('a table that began empty is analysed once, after its first pages', async () => {
  const { rows, add } = await youngWarehouse();
  expect(await rows()).toBe(-1);
  await add(900);
  expect(await rows()).toBe(-1);
  await add(100);
  expect(await rows()).toBe(1_000);
  await add(5_000);
  expect(await rows()).toBe(1_000);
});

test('a table that Postgres has already analysed is not analysed again', async () => {
  const { warehouse, rows, add } = await youngWarehouse();
  await warehouse.db.execute(sql`insert into utility.documents (id) values (${randomUUID()}::uuid)`);
  await warehouse.db.execute(sql`analyze utility.documents`);
  await add(2_000);
  expect(await rows()).toBe(1);
});

import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { recordEvents } from '../../db/events/record-events.ts';
import { company, connectionEvent, delivery, documentEvent } from './events.ts';
import { writeRecords } from './pages.ts';
import { borrowWarehouse, createWarehouse, type TestWarehouse } from './warehouse.ts';

/** What a warehouse holds: relations of fields, and the rows of each table that has some. */
async function contentsOf({ db }: TestWarehouse): Promise<Record<string, unknown>> {
  const { rows } = await db.execute<{ name: string }>(sql`
    select oid::regclass::text as name from pg_class
    where relkind in ('r', 'v') and not relispartition
      and relnamespace::regnamespace::text in ('utility', 'history', 'ops', 'metersync', 'fields')
      and (relkind = 'r' or relnamespace = 'fields'::regnamespace)
    order by 1`);
  const contents: Record<string, unknown> = {};
  for (const { name } of rows) {
    const read = await db.execute(sql`select t::text as row from ${sql.raw(name)} t order by 1`);
    contents[name] = read.rows.map(({ row }) => row);
    // A migration notes several times that everything changed; once says the same.
    if (name === 'metersync.company_changes')
      contents[name] = [...new Set(read.rows.map(({ row }) => String(row).split(',')[0]))];
  }
  return contents;
}

test('a borrowed warehouse that a test returned is like a new one', async () => {
  const created = await createWarehouse();
  const before = await contentsOf(created);
  await created.drop();

  const first = await borrowWarehouse();
  const documentId = randomUUID();
  const updated = '2026-05-01T00:00:00.000001';
  await recordEvents(first.db, [
    delivery(documentEvent('updated', documentId, updated)),
    delivery(connectionEvent('created', randomUUID(), updated, 'CONNECTED')),
  ]);
  await writeRecords(first, 'companies', [{ id: company.id, name: 'Acme' }]);
  await writeRecords(first, 'documents', [{ id: documentId, updated }], { companyId: company.id });
  await writeRecords(first, 'documents', [{ id: documentId, updated, note: 'x' }], {
    companyId: company.id,
    readAt: '2026-06-02T00:00:00Z',
  });
  expect(await contentsOf(first)).not.toEqual(before);
  await first.drop();

  const second = await borrowWarehouse();
  expect(second.url).toBe(first.url);
  expect(await contentsOf(second)).toEqual(before);
  await second.db.execute(sql`create view fields.made as select 1 as one`);
  await second.drop();

  const third = await borrowWarehouse();
  expect(third.url).not.toBe(first.url);
  await third.drop();
});

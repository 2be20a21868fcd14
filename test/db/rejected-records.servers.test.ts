import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { warehouseNow } from '../../db/catch-up/due.ts';
import { forFile } from '../support/for-file.ts';
import { type Read, rowOf, writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const companyId = randomUUID();
const rejected = async (resource: string, recordId: string) =>
  (
    await warehouse.db.execute(sql`select error, record, company_id from metersync.rejected_records
      where resource = ${resource} and record_id = ${recordId}`)
  ).rows[0];

describe('a record that Postgres refuses', () => {
  test('and that has no usable id is kept once under its hash, however often it is read', async () => {
    const before = await count();
    const page = ['{"name":"no id"}', '{"id":"not a uuid"}', '{"id":null}', '{"id":7}'];
    expect(await writeRecords(warehouse, 'documents', page)).toMatchObject({ inserted: 0, rejected: 4 });
    await writeRecords(warehouse, 'documents', page);
    expect((await count()) - before).toBe(4);
    expect(await rejected('documents', 'not a uuid')).toMatchObject({ record: '{"id":"not a uuid"}' });
  });

  test('is a company without an id, and its sites are not written, because no run would tombstone them', async () => {
    const [stray, site] = [randomUUID(), randomUUID()];
    const page = [{ sites: [{ id: stray }] }, { id: randomUUID(), sites: [{ id: site }] }];
    expect(await writeRecords(warehouse, 'companies', page)).toMatchObject({ inserted: 1, rejected: 1 });
    await writeRecords(warehouse, 'sites', page);
    expect(await rowOf(warehouse, 'sites', stray)).toBeUndefined();
    expect(await rowOf(warehouse, 'sites', site)).toBeDefined();
  });

  test('is kept even if its id contains a NUL', async () => {
    const page = ['{"id":"a\\u0000b"}', `{"id":"${randomUUID()}"}`];
    expect(await writeRecords(warehouse, 'documents', page)).toMatchObject({ inserted: 1, rejected: 1 });
    expect(await rejected('documents', 'a\\0b')).toMatchObject({ record: '{"id":"a\\u0000b"}' });
  });
});

/** Values that Postgres cannot hold in any field. */
const unholdable = {
  'a NUL': '"note":"a\\u0000b"',
  'a lone surrogate': '"note":"\\ud800"',
  'a number beyond numeric': '"factor":1e200000',
} as const;

describe.each(['companies', 'sites', 'connections', 'documents', 'usageData', 'meters'] as const)(
  '%s',
  (listing) => {
    // Sites are parts of the records of companies.
    const refusedAs = listing === 'sites' ? 'companies' : listing;
    const record = (id: string, fields: string) =>
      listing === 'sites' ? `{"id":"${id}","sites":[{"id":"${id}",${fields}}]}` : `{"id":"${id}",${fields}}`;
    const good = () => record(randomUUID(), '"name":"in order"');
    const write = async (page: readonly string[], read: Read) => {
      // Sites are written after their companies.
      const companies = page.map((text) => text.replace(/,.*/, '}'));
      if (listing === 'sites') await writeRecords(warehouse, 'companies', companies);
      return await writeRecords(warehouse, listing, page, read);
    };

    test('a refused record is kept until a later read succeeds', async () => {
      const bad = Object.entries(unholdable).map(([kind, fields]) => ({ id: randomUUID(), kind, fields }));
      const page = bad.flatMap(({ id, fields }) => [good(), record(id, fields)]);
      const [before, readAt] = [await warehouseNow(warehouse.db), await warehouseNow(warehouse.db)];
      expect(await write(page, { companyId, readAt })).toMatchObject({
        inserted: bad.length,
        rejected: bad.length,
      });
      for (const { id, kind, fields } of bad) {
        expect([kind, await rejected(refusedAs, id)]).toEqual([
          kind,
          expect.objectContaining({ record: record(id, fields) }),
        ]);
        expect(await rowOf(warehouse, listing, id)).toBeUndefined();
      }
      const mended = bad.map(({ id }) => record(id, '"name":"mended"'));
      await write(mended, { companyId, readAt: before });
      for (const { id } of bad) expect(await rejected(refusedAs, id)).toBeDefined();
      const later = await warehouseNow(warehouse.db);
      await write([...mended, record(randomUUID(), unholdable['a NUL'])], {
        companyId,
        readAt: later,
      });
      for (const { id } of bad) {
        expect(await rejected(refusedAs, id)).toBeUndefined();
        expect(await rowOf(warehouse, listing, id)).toBeDefined();
      }
    });
  },
);

const count = async () =>
  Number(
    (await warehouse.db.execute(sql`select count(*)::int as n from metersync.rejected_records`)).rows[0]?.n,
  );

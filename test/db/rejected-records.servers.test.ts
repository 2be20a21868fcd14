import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { warehouseNow } from '../../db/catch-up/due.ts';
import { forFile } from '../support/for-file.ts';
import { type Read, rowOf, writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const updated = '2026-05-01T00:00:00.000001';
const companyId = randomUUID();
const rejected = async (resource: string, recordId: string) =>
  (
    await warehouse.db.execute(sql`select error, record, company_id from metersync.rejected_records
      where resource = ${resource} and record_id = ${recordId}`)
  ).rows[0];

/** Records that Postgres cannot hold, as the service writes them. */
const refused: readonly [name: string, resource: 'documents' | 'usageData', fields: string, error: RegExp][] =
  [
    ['a NUL', 'documents', '"note":"a\\u0000b"', /unsupported Unicode|\\u0000/],
    ['a lone surrogate', 'documents', '"note":"\\ud800"', /surrogate|Unicode/],
    ['a number beyond numeric in raw', 'usageData', '"multiplier":1e200000', /overflow/],
  ];

describe('a record that Postgres refuses', () => {
  test.each(refused)(
    'is kept with its text and the reason, and the others are written: %s',
    async (...of) => {
      const [, resource, fields, error] = of;
      const id = randomUUID();
      const neighbours = Array.from({ length: 6 }, () => randomUUID());
      const text = `{"id":"${id}","updated":"${updated}",${fields}}`;
      const page = neighbours.map((neighbour) => JSON.stringify({ id: neighbour, updated }));
      page.splice(3, 0, text);
      expect(await writeRecords(warehouse, resource, page, { companyId })).toEqual({
        inserted: 6,
        changed: 0,
        rejected: 1,
      });
      for (const neighbour of neighbours) expect(await rowOf(warehouse, resource, neighbour)).toBeDefined();
      expect(await rowOf(warehouse, resource, id)).toBeUndefined();
      expect(await rejected(resource, id)).toEqual({
        error: expect.stringMatching(error),
        record: text,
        company_id: companyId,
      });
    },
  );

  test('is kept for each of several on a page', async () => {
    const ids = Array.from({ length: 9 }, () => randomUUID());
    const page = ids.map((id, at) => `{"id":"${id}","note":"${at % 2 === 0 ? '\\u0000' : 'fine'}"}`);
    expect(await writeRecords(warehouse, 'documents', page)).toMatchObject({ inserted: 4, rejected: 5 });
  });

  test('without a usable id is kept once under its hash, however often it is read', async () => {
    const before = await count();
    const page = ['{"name":"no id"}', '{"id":"not a uuid"}', '{"id":null}', '{"id":7}'];
    expect(await writeRecords(warehouse, 'documents', page)).toMatchObject({ inserted: 0, rejected: 4 });
    await writeRecords(warehouse, 'documents', page);
    expect((await count()) - before).toBe(4);
    expect(await rejected('documents', 'not a uuid')).toMatchObject({ record: '{"id":"not a uuid"}' });
  });

  test('brings no sites if it is a company without an id, because no run would tombstone them', async () => {
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

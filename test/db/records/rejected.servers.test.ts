import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { warehouseNow } from '../../../db/queue/due.ts';
import { comparePage } from '../../../db/read/compare-records.ts';
import { forFile } from '../../support/for-file.ts';
import { pageOfRecords, type Read, rowOf, writeRecords } from '../../support/pages.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const companyId = randomUUID();
const updated = '2026-04-01T00:00:00Z';
const idIn = (text: string) => (JSON.parse(text) as { id: string }).id;
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

  test.each([
    ['documents', 'a\\u0000b', 'a\\0b'],
    ['meters', 'a\\u0000b', 'a\\0b'],
    ['meters', 'a\\udc00b', 'a\ufffdb'],
  ] as const)(
    'is one of the %s with the id %s, which would become another id',
    async (listing, id, refusedAs) => {
      const page = [`{"id":"${id}"}`, `{"id":"${id}","note":"\\u0000"}`, `{"id":"${randomUUID()}"}`];
      expect(await writeRecords(warehouse, listing, page)).toMatchObject({ inserted: 1, rejected: 2 });
      expect(await rejected(listing, refusedAs)).toMatchObject({ record: page[1] });
    },
  );
});

/** Values that Postgres cannot hold in any field. */
const unholdable = {
  'a number beyond numeric': '"factor":1e200000',
  'a number beyond numeric and a NUL': '"note":"a\\u0000b","factor":1e200000',
  'nesting that is too deep': `"deep":${'['.repeat(20_000)}${']'.repeat(20_000)}`,
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
    const unreadable = async (id: string) => (await rowOf(warehouse, listing, id))?.unreadable;
    const text = listing === 'sites' ? 'name' : 'note';

    test.each([
      ['a NUL', String.raw`"FIELD":"a\u0000b"`, { FIELD: 'a\ufffdb' }, { FIELD: String.raw`a\u0000b` }],
      [
        'a lone high surrogate',
        String.raw`"FIELD":"\ud800"`,
        { FIELD: '\ufffd' },
        { FIELD: String.raw`\ud800` },
      ],
      [
        'a lone low surrogate',
        String.raw`"FIELD":"\uDC00x"`,
        { FIELD: '\ufffdx' },
        { FIELD: String.raw`\uDC00x` },
      ],
      [
        'a NUL next to a pair and a backslash',
        String.raw`"FIELD":"\ud83d\ude00\\u0000\\\u0000"`,
        { FIELD: '😀\\u0000\\\ufffd' },
        { FIELD: String.raw`\ud83d\ude00\\u0000\\\u0000` },
      ],
      [
        'a NUL in a nested text and in a name',
        String.raw`"lines":[{},{"of":{"FIELD":"\u0000"},"a\u0000":"\ud800"}]`,
        { lines: [{}, { of: { FIELD: '\ufffd' }, 'a\ufffd': '\ufffd' }] },
        {
          'lines[1].of.FIELD': String.raw`\u0000`,
          'lines[1].a\ufffd (name)': String.raw`a\u0000`,
          'lines[1].a\ufffd': String.raw`\ud800`,
        },
      ],
    ] as const)(
      'a record with %s has a row, and the text as it was sent',
      async (_kind, spelled, held, sent) => {
        const renamed = (value: unknown) =>
          JSON.parse(JSON.stringify(value).replaceAll('FIELD', text)) as object;
        const id = randomUUID();
        const fields = `${spelled.replaceAll('FIELD', text)},"updated":"${updated}"`;
        const page = [good(), record(id, fields), good()];
        expect(await write(page, { companyId })).toMatchObject({ inserted: 3, rejected: 0 });
        const row = await rowOf(warehouse, listing, id);
        expect(row?.raw).toEqual({ id, ...renamed(held), updated });
        expect(row?.unreadable).toEqual(renamed(sent));
        if (listing === 'sites') {
          await writeRecords(warehouse, 'companies', page);
          const inSites = Object.entries(renamed(sent)).map(([path, said]) => [`sites[0].${path}`, said]);
          expect((await rowOf(warehouse, 'companies', id))?.unreadable).toEqual(Object.fromEntries(inSites));
        }
        // The same again changes nothing, and an audit replaces the same characters.
        const readAt = await warehouseNow(warehouse.db);
        expect(await write(page, { companyId, readAt })).toMatchObject({
          inserted: 0,
          changed: 0,
          rejected: 0,
        });
        expect(await rowOf(warehouse, listing, id)).toEqual(row);
        const owner = listing === 'sites' || listing === 'companies' ? null : companyId;
        const compared = pageOfRecords(page, { companyId: owner });
        expect(await comparePage(warehouse.db, listing, compared, page.map(idIn))).toEqual({
          differences: [],
          unreadable: Object.keys(sent).length,
        });
        // A page that was read earlier is too late to change the row.
        const clean = [record(id, `"${text}":"clean","updated":"${updated}"`)];
        await write(clean, { companyId, readAt: '2026-05-01T00:00:00Z' });
        expect(await unreadable(id)).toEqual(renamed(sent));
        await write(clean, { companyId, readAt: await warehouseNow(warehouse.db) });
        expect(await rowOf(warehouse, listing, id)).toMatchObject({
          raw: { [text]: 'clean' },
          unreadable: null,
        });
        expect(await rejected(refusedAs, id)).toBeUndefined();
      },
    );

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
      await write([...mended, record(randomUUID(), unholdable['a number beyond numeric'])], {
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

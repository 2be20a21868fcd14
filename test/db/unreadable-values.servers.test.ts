import { randomBytes, randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { recordEvents } from '../../db/events/record.ts';
import { comparePage } from '../../db/read/compare-records.ts';
import { type RecordResource, recordResources, resources } from '../../db/resources.ts';
import { connectionEvent, delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { type Listing, pageOfRecords, rowOf, writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const updated = '2026-05-01T00:00:00.000001';
const companyId = randomUUID();

/** Writes one record that consists of its id and `fields`, as a page of its listing. */
async function write(listing: Listing, id: string, fields: string) {
  const own = `{"id":"${id}"${fields === '' ? '' : `,${fields}`}}`;
  const page = [listing === 'sites' ? `{"id":"${companyId}","sites":[${own}]}` : own];
  if (listing === 'sites') await writeRecords(warehouse, 'companies', [{ id: companyId }]);
  return { page, own, written: await writeRecords(warehouse, listing, page, { companyId }) };
}

async function compare(listing: Listing, page: readonly string[], ...ids: string[]) {
  return await comparePage(warehouse.db, listing, pageOfRecords(page, { companyId }), ids);
}

/** A field as it is sent, the value of its column, and the text that is kept as unreadable, or null. */
const usageValues: readonly [json: string, column: unknown, kept: string | null][] = [
  ['"1,234.56"', null, '1,234.56'],
  ['""', null, null],
  ['"N/A"', null, 'N/A'],
  ['{"value": "5"}', null, '{"value": "5"}'],
  ['"1e200000"', null, '1e200000'],
  [`"${'9'.repeat(1_001)}"`, null, '9'.repeat(200)],
  ['" 12 "', '12', null],
  ['"+1.50"', '1.50', null],
  ['1.10', '1.10', null],
  [`${'9'.repeat(2_000)}.5`, `${'9'.repeat(2_000)}.5`, null],
];
const dateValues: readonly [json: string, column: unknown, kept: string | null][] = [
  ['""', null, null],
  ['"2026-02-30"', null, '2026-02-30'],
  ['"2026-07-31T23:30:00-05:00"', '2026-07-31', null],
  ['20260301', null, '20260301'],
  ['"2024-02-29"', '2024-02-29', null],
];

describe('usage', () => {
  test.each([
    ...usageValues.map((value) => ['usage', 'usage', ...value] as const),
    ...dateValues.map((value) => ['startDate', 'start_date', ...value] as const),
    ...dateValues.map((value) => ['endDate', 'end_date', ...value] as const),
  ])('%s: keeps a record with %s %s', async (field, name, json, column, kept) => {
    const id = randomUUID();
    const { page, own, written } = await write('usageData', id, `"updated":"${updated}","${field}":${json}`);
    expect(written).toEqual({ inserted: 1, changed: 0, rejected: 0 });
    const [row] = await rows(sql`
      select ${sql.identifier(name)}::text as value, raw = ${own}::jsonb as whole, unreadable
      from utility.usage_data where id = ${id}::uuid`);
    expect(row).toEqual({ value: column, whole: true, unreadable: kept === null ? null : { [field]: kept } });
    expect(await compare('usageData', page, id)).toEqual({
      differences: [],
      unreadable: kept === null ? 0 : 1,
    });
  });
});

/** Values that are not of any type except text, and some that are not even text. */
const odd = [
  '"2026-02-30T00:00:00"',
  '"infinity"',
  '"acme"',
  '"N/A"',
  '""',
  'true',
  '7',
  '1e300',
  '{}',
  '{"id":"acme"}',
  '{"id":null}',
  '{"id":{"id":1}}',
  '[]',
  '[[]]',
  '["x"]',
  '[{"id":"acme"}]',
  '[{"id":7,"site":"acme"}]',
  JSON.stringify(randomBytes(10_000).toString('hex')),
  JSON.stringify({ id: randomBytes(10_000).toString('hex') }),
];

/** Further fields that a type or an id is expected of. */
const parts: Partial<Record<RecordResource, readonly string[]>> = {
  companies: ['externalId', 'publicId', 'sites'],
  connections: ['externalId', 'sitesRelations'],
  documents: ['revisedDocumentId', 'usageData'],
  meters: ['siteId', 'account'],
  usageData: ['documentId', 'meterId', 'isEstimated', 'exclusion', 'billedDemand'],
};

describe.each(recordResources)('%s', (resource) => {
  const { columns } = resources[resource];
  const fields = [
    ...new Set([
      ...columns.map(({ column }) => camelCase(column.name).replace(/Id$/, '')),
      ...(parts[resource] ?? []),
      'netMeteringType',
    ]),
  ];
  test.each(fields)('%s: no value makes its record or another record of the page fail', async (field) => {
    const sent = odd.map((json) => ({ id: randomUUID(), json }));
    const texts = sent.map(({ id, json }) => `{"id":"${id}","${field}":${json}}`);
    const page = resource === 'sites' ? [`{"id":"${companyId}","sites":[${texts.join(',')}]}`] : texts;
    if (resource === 'sites') await writeRecords(warehouse, 'companies', [{ id: companyId }]);
    expect(await writeRecords(warehouse, resource, page, { companyId })).toMatchObject({ rejected: 0 });
    const written = await rows(sql`
      select json, raw = own::jsonb as whole, unreadable
      from unnest(${sql.param(sent.map(({ id }) => id))}::uuid[], ${sql.param(sent.map(({ json }) => json))}::text[],
          ${sql.param(texts)}::text[]) as sent (id, json, own)
        left join ${resources[resource].table} row on row.id::text = sent.id::text`);
    expect(written.filter(({ whole }) => whole !== true)).toEqual([]);
    const { differences, unreadable } = await compare(resource, page, ...sent.map(({ id }) => id));
    expect(differences).toEqual([]);
    expect(written.flatMap((row) => Object.keys(row.unreadable ?? {}))).toHaveLength(unreadable);
  });
});

describe('a corrected value', () => {
  test('fills the column and removes the note of the unreadable value', async () => {
    const id = randomUUID();
    await write('usageData', id, '"usage":"N/A"');
    expect(await rowOf(warehouse, 'usageData', id)).toMatchObject({ unreadable: { usage: 'N/A' } });
    await write('usageData', id, '"usage":"5"');
    expect(await rowOf(warehouse, 'usageData', id)).toMatchObject({ usage: '5', unreadable: null });
  });
});

describe('parts with tables of their own', () => {
  test('a site with an unusable id does not affect its company or the other sites', async () => {
    const [company, site] = [randomUUID(), randomUUID()];
    const page = [{ id: company, sites: [{ id: 'nowhere' }, { id: site, name: 'Here' }, 'none', null] }];
    await writeRecords(warehouse, 'companies', page);
    expect(await writeRecords(warehouse, 'sites', page)).toMatchObject({ inserted: 1, rejected: 0 });
    expect(await rowOf(warehouse, 'companies', company)).toMatchObject({ unreadable: { sites: 'nowhere' } });
    expect(await rowOf(warehouse, 'sites', site)).toMatchObject({ name: 'Here', unreadable: null });
  });

  test('a connection is linked to the sites whose ids are usable', async () => {
    const [id, site] = [randomUUID(), randomUUID()];
    const relations = JSON.stringify([{ site: { id: 'nowhere' } }, { site: { id: site } }]);
    const { written } = await write('connections', id, `"sitesRelations":${relations}`);
    expect(written).toMatchObject({ inserted: 1, rejected: 0 });
    expect(
      await rows(sql`select site_id from utility.connection_sites where connection_id = ${id}::uuid`),
    ).toEqual([{ site_id: site }]);
    expect(await rowOf(warehouse, 'connections', id)).toMatchObject({
      unreadable: { sitesRelations: 'nowhere' },
    });
  });

  test('usage that a document lists is written whatever it contains', async () => {
    const [id, good, odd] = [randomUUID(), randomUUID(), randomUUID()];
    const usageData = [
      { id: good, usage: '1' },
      { id: odd, usage: 'N/A', startDate: '2026-02-30' },
      { id: 'nowhere', usage: '3' },
    ];
    await writeRecords(warehouse, 'documents', [{ id, updated, usageData }], { companyId }, true);
    expect(
      await rows(sql`select id, usage, unreadable from utility.usage_data
          where document_id = ${id}::uuid order by usage`),
    ).toEqual([
      { id: good, usage: '1', unreadable: null },
      { id: odd, usage: null, unreadable: { usage: 'N/A', startDate: '2026-02-30' } },
    ]);
    expect(await rowOf(warehouse, 'documents', id)).toMatchObject({ unreadable: { usageData: 'nowhere' } });
  });
});

describe('an event', () => {
  test.each([
    [
      'connection',
      'connections',
      (id: string) => connectionEvent('updated', id, updated, 'CONNECTED'),
      { created: 'soon', status: 'x'.repeat(600), url: { a: 1 } },
    ],
    [
      'document',
      'documents',
      (id: string) => documentEvent('updated', id, updated),
      { created: '2026-02-30T00:00:00', site: { id: 'nowhere' } },
    ],
  ] as const)('about a %s fills the columns whose values can be read', async (_, listing, eventOf, odd) => {
    const id = randomUUID();
    const recorded = await recordEvents(warehouse.db, [delivery({ ...eventOf(id), ...odd })]);
    expect(recorded).toMatchObject({ fresh: 1, dead: 0 });
    const row = await rowOf(warehouse, listing, id);
    expect(row).toMatchObject({ created: null, updated: expect.anything() });
    expect(row?.unreadable).toMatchObject({ created: odd.created });
    expect(Object.keys(row?.unreadable ?? {})).toHaveLength(2);
    await write(listing, id, `"updated":"${updated}","created":"2026-01-01T00:00:00"`);
    expect(await rowOf(warehouse, listing, id)).toMatchObject({ unreadable: null });
  });
});

const rows = async (query: ReturnType<typeof sql>) => (await warehouse.db.execute(query)).rows;

const camelCase = (name: string): string =>
  name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

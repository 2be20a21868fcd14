import { randomBytes, randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isDateText, isNumberText, isTimeText } from '../../../contract/values.ts';
import { array } from '../../../db/connection/arrays.ts';
import { recordEvents } from '../../../db/events/record.ts';
import { settleRecords } from '../../../db/events/settle.ts';
import { warehouseNow } from '../../../db/queue/due.ts';
import { comparePage } from '../../../db/read/compare-records.ts';
import { type RecordResource, recordResources, resources } from '../../../db/resources.ts';
import { cases } from '../../support/cases.ts';
import { connectionEvent, delivery, documentEvent } from '../../support/events.ts';
import { forFile } from '../../support/for-file.ts';
import { type Listing, pageOfRecords, rowOf, writeRecords } from '../../support/pages.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const rows = async (query: ReturnType<typeof sql>) => (await warehouse.db.execute(query)).rows;

describe('amounts', () => {
  test.each([
    ['a number', '12345678901234567890.000000000000000001'],
    ['a decimal string', '"12345678901234567890.000000000000000001"'],
    ['a number that a float would round', '0.1000000000000000055511151231257827'],
    ['a trailing zero', '1.10'],
    ['a negative amount', '-0.010'],
    ['an exponent', '1.5e3'],
  ])('%s keeps all its digits in its column and in raw', async (_, written) => {
    const id = randomUUID();
    await writeRecords(warehouse, 'usageData', [`{"id":"${id}","usage":${written}}`]);
    const [row] = await rows(sql`select usage = ${written.replaceAll('"', '')}::numeric as exact,
      scale(usage) = scale(${written.replaceAll('"', '')}::numeric) as same_scale,
      raw ->> 'usage' = ${written}::jsonb #>> '{}' as raw_exact from utility.usage_data where id = ${id}::uuid`);
    expect(row).toEqual({ exact: true, same_scale: true, raw_exact: true });
  });
});

describe('times', () => {
  const updatedOf = async (of: typeof warehouse, updated: string) => {
    const id = randomUUID();
    await writeRecords(of, 'documents', [{ id, updated }]);
    const result = await of.db.execute<{ at: string }>(
      sql`select to_char(updated at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as at from utility.documents where id = ${id}::uuid`,
    );
    return result.rows[0]?.at;
  };

  test.each([
    ['2026-01-02T03:04:05.678901', '2026-01-02T03:04:05.678901'],
    ['2026-01-02T03:04:05.678901Z', '2026-01-02T03:04:05.678901'],
    ['2026-01-02T03:04:05.678901+02:00', '2026-01-02T01:04:05.678901'],
    ['2026-01-02T03:04:05-0530', '2026-01-02T08:34:05.000000'],
    ['2026-01-02 03:04:05', '2026-01-02T03:04:05.000000'],
    ['2026-01-02', '2026-01-02T00:00:00.000000'],
    ['2026-01-02T03:04:05.678901499', '2026-01-02T03:04:05.678901'],
    ['2026-01-02T03:04:05.678901999', '2026-01-02T03:04:05.678901'],
    ['1767323045', '2026-01-02T03:04:05.000000'],
  ])('of %s are read as %s UTC', async (sent, read) => {
    expect(await updatedOf(warehouse, sent)).toBe(read);
  });

  test('without a zone are read in the configured zone, and the setting does not affect times with a zone', async () => {
    const newYork = await createWarehouse('America/New_York');
    try {
      expect(await updatedOf(newYork, '2026-07-02T03:04:05.678901')).toBe('2026-07-02T07:04:05.678901');
      expect(await updatedOf(newYork, '2026-01-02T03:04:05.678901')).toBe('2026-01-02T08:04:05.678901');
      expect(await updatedOf(newYork, '2026-07-02T03:04:05.678901Z')).toBe('2026-07-02T03:04:05.678901');
      expect(await updatedOf(newYork, '2026-07-02T03:04:05.678901+01:00')).toBe('2026-07-02T02:04:05.678901');
    } finally {
      await newYork.drop();
    }
  });

  test.each(['.1234564', '.123456500', '.123456501', '.123455500', '.999999999'])(
    'with up to nine fraction digits (%s) are rounded equally in event and record, so the record settles the event',
    async (fraction) => {
      const id = randomUUID();
      const updated = `2026-01-02T03:04:05${fraction}`;
      const event = delivery(documentEvent('updated', id, updated));
      await recordEvents(warehouse.db, [event]);
      const readAt = await warehouseNow(warehouse.db);
      await writeRecords(warehouse, 'documents', [{ id, updated }], { readAt });
      await settleRecords(warehouse.db, 'documents', [id], readAt);
      expect(await rows(sql`select outcome from metersync.events where id = ${event.id}`)).toEqual([
        { outcome: 'applied' },
      ]);
    },
  );
});

describe('raw', () => {
  test('is the record as the service sent it, with unknown fields and nesting', async () => {
    const id = randomUUID();
    const record = { id, brandNew: [{ a: null, b: ['x', 1, true] }], nested: { name: 'of a field' } };
    await writeRecords(warehouse, 'documents', [record]);
    expect((await rowOf(warehouse, 'documents', id))?.raw).toEqual(record);
  });
});

describe('values that no column can hold', () => {
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
      const { page, own, written } = await write(
        'usageData',
        id,
        `"updated":"${updated}","${field}":${json}`,
      );
      expect(written).toEqual({ inserted: 1, changed: 0, rejected: 0 });
      const [row] = await rows(sql`
      select ${sql.identifier(name)}::text as value, raw = ${own}::jsonb as whole, unreadable
      from utility.usage_data where id = ${id}::uuid`);
      expect(row).toEqual({
        value: column,
        whole: true,
        unreadable: kept === null ? null : { [field]: kept },
      });
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
      expect(await rowOf(warehouse, 'companies', company)).toMatchObject({
        unreadable: { sites: 'nowhere' },
      });
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

  const camelCase = (name: string): string =>
    name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
});

describe('texts of values', () => {
  const number = fc
    .tuple(
      fc.constantFrom('', ' ', '\t\n', '\u00a0'),
      fc.constantFrom('', '-', '+', '--', '−'),
      fc.constantFrom('0', '12', '1_000', '1,000', '٣', '0x1F', '', '9'.repeat(300), '9'.repeat(999)),
      fc.constantFrom('', '.', '.5', '.5.5', ',5', `.${'0'.repeat(400)}1`),
      fc.constantFrom('', 'e3', 'E-4', 'e+99', 'e9999', 'e-9999', 'e99999', 'e', 'e1.5'),
      fc.constantFrom('', ' ', '\r\v\f', ' kWh', '٣'),
    )
    .map((parts) => parts.join(''));
  const time = fc
    .tuple(
      fc.constantFrom('2026', '2024', '2000', '1900', '0000', '0001', '9999', '26', '12026', '٢٠٢٦'),
      fc.constantFrom('-', '-', '-', '/', ''),
      fc.constantFrom('01', '02', '04', '12', '00', '13', '1'),
      fc.constantFrom('-01', '-28', '-29', '-30', '-31', '-00', '-32', '-1', ''),
      fc.constantFrom('T', 'T', ' ', 't', ''),
      fc.constantFrom('00:00', '23:59:59', '24:00', '24:00:00', '24:00:01', '23:59:60', '12:60', '9:00', ''),
      fc.constantFrom('', '.5', '.0', '.1234567891', ',5', '.'),
      fc.constantFrom(
        '',
        'Z',
        'z',
        '+02:00',
        '-0530',
        '+15:59',
        '+16',
        '+05',
        ' Z',
        ' America/New_York',
        ' BC',
      ),
    )
    .map((parts) => parts.join(''));
  const seconds = fc.integer({ min: 0, max: 10 ** 12 }).map(String);
  const text = fc.oneof(
    { weight: 4, arbitrary: number },
    { weight: 4, arbitrary: time },
    { weight: 1, arbitrary: seconds },
    { weight: 2, arbitrary: fc.string({ unit: fc.constantFrom(...'0123456789-+.:eETZ \u00a0٣') }) },
    fc.constantFrom(
      'infinity',
      '-infinity',
      'now',
      'today',
      'epoch',
      'NaN',
      'Inf',
      'allballs',
      'null',
      '\\N',
    ),
  );

  describe('the grammar of texts', () => {
    test.each(['UTC', 'America/New_York', 'Asia/Kolkata'])(
      'is the same in TypeScript and in SQL, which never fails, in %s',
      async (zone) => {
        const attempt = async (texts: readonly string[]): Promise<void> => {
          const read = await warehouse.db.transaction(async (tx) => {
            await tx.execute(sql`select set_config('timezone', ${zone}, true)`);
            const result = await tx.execute(sql`
            select
              metersync.read_number(t) is not null as number,
              metersync.read_time(t) is not null as time,
              metersync.read_date(t) is not null as date,
              coalesce(metersync.number_of(t) = metersync.read_number(t), true) as alike
            from unnest(${array(texts, 'text')}) with ordinality as given (t, place)
            order by place`);
            return result.rows;
          });
          const expected = texts.map((one) => ({
            number: isNumberText(one),
            time: isTimeText(one),
            date: isDateText(one),
            alike: true,
          }));
          expect(read.map((row, at) => [texts[at], row])).toEqual(
            expected.map((row, at) => [texts[at], row]),
          );
        };
        await fc.assert(fc.asyncProperty(fc.array(text, { minLength: 50, maxLength: 200 }), attempt), {
          seed: 20_261_127,
          numRuns: cases(30, 500),
        });
      },
    );
  });
});

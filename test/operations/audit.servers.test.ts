import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { describeAudit } from '../../cli/commands/audit.ts';
import { defaultEndpoints, type EndpointCatalogue } from '../../contract/endpoints.ts';
import { checkKinds } from '../../contract/names.ts';
import { attemptPolicy } from '../../contract/retry-policy.ts';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import { companiesToCheck, deleteOutdatedChecks } from '../../db/checks/companies-to-check.ts';
import { connectWarehouse } from '../../db/connection/connect.ts';
import { undoDeletes } from '../../db/deletes/decide.ts';
import { recordEvents } from '../../db/events/record.ts';
import { unlistedRows } from '../../db/read/extra-rows.ts';
import { forgetListed } from '../../db/records/also-listed.ts';
import { recordResources, tableName } from '../../db/resources.ts';
import { type AuditOptions, audit, repair } from '../../operations/audit/audit.ts';
import { recorded } from '../../operations/recorded.ts';
import { readIntervals } from '../../service/intervals.ts';
import { createDoor } from '../service/door.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { rejection, setup } from '../service/setup.ts';
import { activitiesOn } from '../support/activities.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { rowOf, writeRecords } from '../support/pages.ts';
import { until } from '../support/poll.ts';
import { began, writeReadings } from '../support/readings.ts';
import { borrowWarehouse, type TestWarehouse } from '../support/warehouse.ts';

/** The service's records by the path below the version; a record may be JSON text. */
type Held = Record<string, readonly (object | string)[]>;

let warehouse: TestWarehouse;
let ids: ReturnType<typeof someIds>;
const someIds = () => ({
  company: randomUUID(),
  site: randomUUID(),
  connection: randomUUID(),
  documents: Array.from({ length: 3 }, () => randomUUID()),
  usage: randomUUID(),
  meter: randomUUID(),
});

beforeEach(async () => {
  warehouse = await borrowWarehouse();
  onTestFinished(() => warehouse.drop());
  ids = someIds();
});

const updated = '2026-05-01T00:00:00.000001';
const reading = (hour: number, usage: string) => ({
  start: `2026-05-01T0${hour}:00:00`,
  end: `2026-05-01T0${hour}:15:00`,
  usage,
  usageUnits: 'kWh',
  quality: 'ACTUAL',
});

function everything(): Held {
  const { company, site, connection, documents, usage, meter } = ids;
  return {
    '/company': [{ id: company, name: 'Acme', sites: [{ id: site, name: 'Plant' }] }],
    [`/connection/company/${company}`]: [{ id: connection, status: 'CONNECTED', url: 'x', updated }],
    [`/document/company/${company}`]: documents.map((id) => ({ id, created: updated, updated })),
    [`/usage/company/${company}`]: [{ id: usage, usage: '1.10', updated, document: { id: documents[0] } }],
    [`/meter/company/${company}`]: [{ id: meter }],
    [`/interval/meter/${meter}`]: [reading(1, '1'), reading(2, '2'), reading(3, '3')],
  };
}

/** Makes one record of each resource with values for all of its columns. */
function completeRecords(): Held {
  const { company, site, connection, documents, usage, meter } = ids;
  const [document] = documents;
  const sitesRelations = [{ site: { id: site }, accountIds: ['1', '2'], datasourceTypes: ['WATER'] }];
  const dates = { created: '2026-04-01T00:00:00', updated };
  const names = { externalId: 'x-1', publicId: 'p-1' };
  const of = { meter: { id: meter }, document: { id: document, company }, site: { id: site } };
  const bill = { startDate: '2026-03-01', endDate: '2026-03-31', usage: '1.10', usageUnits: 'kWh' };
  return {
    '/company': [{ id: company, ...names, name: 'Acme', sites: [{ id: site, name: 'Plant' }] }],
    [`/connection/company/${company}`]: [
      {
        id: connection,
        ...dates,
        ...names,
        status: 'CONNECTED',
        url: 'x',
        datasource: { name: 'P' },
        sitesRelations,
      },
    ],
    [`/document/company/${company}`]: [{ id: document, ...dates, company, site: { id: site } }],
    [`/usage/company/${company}`]: [{ id: usage, ...dates, ...of, ...bill }],
    [`/meter/company/${company}`]: [
      { id: meter, site: { id: site }, account: { id: 'a' }, datasourceType: 'WATER' },
    ],
    [`/interval/meter/${meter}`]: [{ ...reading(1, '1'), updated }],
  };
}

/** How a value of each type of column becomes another value. */
const otherwiseOf: Readonly<Record<string, (column: string) => string>> = {
  uuid: () => 'gen_random_uuid()',
  text: (column) => `coalesce(${column}, '') || '!'`,
  numeric: (column) => `${column} + 1`,
  integer: (column) => `${column} + 1`,
  date: (column) => `${column} + 1`,
  jsonb: () => `'{"name":"falsified"}'`,
  ARRAY: () => `'{"falsified"}'`,
  'timestamp with time zone': (column) => `coalesce(${column}, now()) + interval '1 microsecond'`,
};

/** A statement that falsifies one column in all rows, and what an audit of the rows then finds. */
interface Falsified {
  readonly column: string;
  readonly statement: string;
  readonly found: readonly string[];
}

/** Every column of the tables that is computed from a record or from other rows, except ids. */
async function columnsToFalsify(): Promise<Falsified[]> {
  const { rows } = await warehouse.db.execute<{ table: string; column: string; type: string }>(sql`
    select table_name as table, column_name as column, data_type as type from information_schema.columns
    where table_schema = 'utility' and is_generated = 'NEVER'
      and table_name = any(${sql.param([...recordResources.map(tableName), 'connection_sites', 'intervals'])}::text[])
      and column_name not in ('id', 'raw', 'api_version', 'first_synced_at', 'synced_at', 'usage_read_at', 'digest',
        'connection_id', 'absent_since', 'absent_by', 'document_deleted_at')
      and column_name not like 'hint%'
    order by table_name, ordinal_position`);
  return rows.map(({ table, column, type }) => {
    const other = column === 'deleted_reason' ? "'absent'" : otherwiseOf[type]?.(column);
    return {
      column: `${table}.${column}`,
      statement: `update utility.${table} set ${column} = ${other}`,
      found: foundIn(table, column),
    };
  });
}

const keyOfReading = ['meter_id', 'start_at', 'granularity_seconds', 'usage_units', 'ordinal'];

function foundIn(table: string, column: string): string[] {
  if (table === 'connection_sites') return ['connections different column sites'];
  if (table === 'intervals') {
    // A row of another meter belongs to no meter that the service lists.
    if (column === 'meter_id') return ['intervals missing'];
    return keyOfReading.includes(column)
      ? ['intervals extra', 'intervals missing']
      : [`intervals different ${column}`];
  }
  const resource = recordResources.find((one) => tableName(one) === table);
  const state = column === 'deleted_at' ? 'missing' : 'different';
  return [`${resource} ${state} column ${column}`];
}

/** Writes the service's records into the warehouse, as a backfill would. */
async function store(held: Held): Promise<void> {
  const { company, meter } = ids;
  const of = (path: string) => held[path] ?? [];
  const read = { companyId: company };
  await writeRecords(warehouse, 'companies', of('/company'));
  await writeRecords(warehouse, 'sites', of('/company'));
  await writeRecords(warehouse, 'connections', of(`/connection/company/${company}`), read);
  await writeRecords(warehouse, 'documents', of(`/document/company/${company}`), read);
  await writeRecords(warehouse, 'usageData', of(`/usage/company/${company}`), read);
  await writeRecords(warehouse, 'meters', of(`/meter/company/${company}`), read);
  const body = JSON.stringify(of(`/interval/meter/${meter}`));
  await writeReadings(warehouse, meter, began(1), readIntervals(body, null));
}

async function auditOf(
  held: Held,
  endpoints: EndpointCatalogue = defaultEndpoints,
  options: Partial<AuditOptions> = {},
) {
  const { client } = await setup((asked) => answer(held, asked), { endpoints });
  return await audit({ warehouse, service: client, concurrency: 8, ...options });
}

async function repairOf(held: Held, options: Partial<AuditOptions> = {}, endpoints = defaultEndpoints) {
  const { client } = await setup((asked) => answer(held, asked), { endpoints });
  return await repair({ warehouse, service: client, concurrency: 8, apiVersion: 'v2.2', ...options });
}

/** The service's records after unreported changes: some are gone, some have changed, and some are new. */
function otherwise(): Held {
  const { company, meter, documents } = ids;
  const [, second, third] = documents;
  const now = everything();
  now[`/document/company/${company}`] = [
    { id: second, created: updated, updated },
    { id: third, created: updated, updated, note: 'changed' },
    { id: randomUUID(), created: updated, updated },
  ];
  now[`/interval/meter/${meter}`] = [reading(1, '1.5'), reading(2, '2'), reading(4, '4')];
  return now;
}

function answer(held: Held, asked: Asked): Reply {
  const records = held[asked.path.replace('/v2.2', '')];
  if (records === undefined) return { json: { detail: 'no such record' }, status: 404 };
  const texts = records.map((record) => (typeof record === 'string' ? record : JSON.stringify(record)));
  if (asked.path.endsWith('/company')) return { body: `[${texts.join(',')}]` };
  const marks = texts.map((_, at) => `mark ${at}`);
  const key = ['connection', 'document', 'usage', 'meter', 'interval'].find((name) =>
    asked.path.startsWith(`/v2.2/${name}/`),
  );
  const items = key === 'usage' ? 'usageData' : `${key}s`;
  const page = pageOf(marks, asked, { key: items, total: `total${items}` }) as { json: unknown };
  return { body: JSON.stringify(page.json).replace(/"mark (\d+)"/g, (_, at) => texts[Number(at)] ?? '') };
}

describe('an audit', () => {
  test('of a warehouse that equals the service compares everything and finds nothing', async () => {
    await store(everything());
    const report = await auditOf(everything());
    expect(report).toMatchObject({ differences: 0, examples: [], compared: 11 });
    const compared = Object.entries(report.resources).map(([name, { compared }]) => [name, compared]);
    expect(Object.fromEntries(compared)).toEqual({
      companies: 1,
      sites: 1,
      connections: 1,
      documents: 3,
      usageData: 1,
      meters: 1,
      intervals: 3,
    });
  });

  test('names each record that is missing, extra or different in the warehouse', async () => {
    const { documents } = ids;
    await store(everything());
    const report = await auditOf(otherwise());
    const { documents: bills, intervals } = report.resources;
    expect([bills, intervals]).toEqual([
      { compared: 3, missing: 1, extra: 1, different: 1, suspect: 0, unread: 0, kept: 0, unreadable: 0 },
      { compared: 3, missing: 1, extra: 1, different: 1, suspect: 0, unread: 0, kept: 0, unreadable: 0 },
    ]);
    expect(report.differences).toBe(6);
    expect(report.examples.filter(({ resource }) => resource === 'documents')).toEqual(
      expect.arrayContaining([
        { resource: 'documents', id: documents[0], state: 'extra', events: [] },
        {
          resource: 'documents',
          id: documents[2],
          state: 'different',
          events: [],
          fields: [{ field: 'note', service: '"changed"', warehouse: null }],
        },
        { resource: 'documents', id: expect.any(String), state: 'missing', events: [] },
      ]),
    );
    expect(report.examples.filter(({ resource }) => resource === 'intervals')).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          state: 'different',
          fields: [{ field: 'usage', service: '1.5', warehouse: '1' }],
        }),
        expect.objectContaining({ state: 'extra', id: expect.stringContaining('@2026-05-01 03:00:00') }),
      ]),
    );
  });

  test('finds a wrongly tombstoned record, a column that contradicts raw, and a number that raw spells differently', async () => {
    await store(everything());
    const { connection, usage, documents } = ids;
    await warehouse.db.execute(sql`update utility.connections set status = 'PENDING'`);
    await warehouse.db.execute(
      sql`update utility.documents set deleted_at = now() where id = ${documents[1] ?? ''}::uuid`,
    );
    await warehouse.db.execute(sql`update utility.usage_data set raw = raw || '{"usage":"1.1"}'`);
    const report = await auditOf(everything());
    expect(report.examples).toMatchObject([
      {
        resource: 'connections',
        id: connection,
        state: 'different',
        fields: [{ field: 'column status', service: 'CONNECTED', warehouse: 'PENDING' }],
      },
      { resource: 'documents', id: documents[1], state: 'missing' },
      { resource: 'usageData', id: usage, state: 'different' },
    ]);
  });

  test('names each column that contradicts the record even if raw does not, and a repair corrects it', async () => {
    await store(completeRecords());
    expect(await auditOf(completeRecords())).toMatchObject({ differences: 0 });
    const columns = await columnsToFalsify();
    expect(columns.length).toBeGreaterThan(50);
    // Only one company, because a row of an unknown company would also be extra.
    const only = { companyId: ids.company };
    for (const { column, statement, found } of columns) {
      await warehouse.db.execute(sql.raw(statement));
      // It would name the column before, too, if the repair before had not corrected it.
      const { examples } = await repairOf(completeRecords(), only);
      const named = examples.flatMap(({ resource, state, fields = [] }) =>
        fields.length > 0
          ? fields.map(({ field }) => `${resource} ${state} ${field}`)
          : [`${resource} ${state}`],
      );
      expect([column, ...named.toSorted()]).toEqual([column, ...found]);
    }
    expect(await auditOf(completeRecords())).toMatchObject({ differences: 0 });
  });

  test('names usage that moved to a foreign company together with its document, and a repair moves it back', async () => {
    const { company, documents, usage } = ids;
    const held: Held = { ...completeRecords() };
    const other = randomUUID();
    held['/company'] = [...(held['/company'] ?? []), { id: other, sites: [] }];
    for (const kind of ['connection', 'document', 'usage', 'meter']) held[`/${kind}/company/${other}`] = [];
    await store(held);
    await warehouse.db.execute(sql`update utility.documents set company_id = ${other}`);
    await warehouse.db.execute(sql`update utility.usage_data set company_id = ${other}`);
    const field = { field: 'column company_id', service: company, warehouse: other };
    const { examples } = await auditOf(held, defaultEndpoints, { companyId: company });
    expect(examples).toMatchObject([
      { resource: 'documents', id: documents[0], state: 'different', fields: [field] },
      { resource: 'usageData', id: usage, state: 'different', fields: [field] },
    ]);
    await repairOf(held);
    expect(await auditOf(held)).toMatchObject({ differences: 0 });
    expect(await rowOf(warehouse, 'usageData', usage)).toMatchObject({ company_id: company });
  });

  test('compares only one company', async () => {
    await store(everything());
    const other = randomUUID();
    await writeRecords(warehouse, 'documents', [{ id: randomUUID() }], { companyId: other });
    await writeRecords(warehouse, 'companies', [{ id: other }]);
    const now = { ...everything(), '/company': [...(everything()['/company'] ?? []), { id: randomUUID() }] };
    expect(await auditOf(now, defaultEndpoints, { companyId: ids.company })).toMatchObject({
      differences: 0,
      compared: 11,
    });
  });

  test('skips records that Postgres cannot hold, counts them as missing and says why', async () => {
    const { company, meter } = ids;
    const bad = randomUUID();
    const held = everything();
    held[`/document/company/${company}`] = [
      ...(held[`/document/company/${company}`] ?? []),
      `{"id":"${bad}","factor":1e200000}`,
    ];
    held[`/interval/meter/${meter}`] = [
      ...(held[`/interval/meter/${meter}`] ?? []),
      { ...reading(5, '1'), start: '2026-05-32T05:00:00' },
    ];
    await store(held);
    const report = await auditOf(held);
    expect(report.examples).toMatchObject([
      { resource: 'documents', id: bad, state: 'missing', refused: expect.stringContaining('numeric') },
      {
        resource: 'intervals',
        id: `${meter}@2026-05-32T05:00:00`,
        state: 'missing',
        refused: 'Cannot read "2026-05-32T05:00:00" as a time.',
      },
    ]);
    expect(report.differences).toBe(2);
  });

  test('says how many values could not be read, and finds no difference in their records', async () => {
    const { company, documents, usage } = ids;
    const held = everything();
    held[`/usage/company/${company}`] = [
      { id: usage, document: { id: documents[0] }, usage: 'N/A', startDate: '2026-02-30', endDate: '' },
    ];
    await store(held);
    const { differences, resources } = await auditOf(held);
    expect(differences).toBe(0);
    expect(resources.usageData).toMatchObject({ compared: 1, missing: 0, different: 0, unreadable: 2 });
  });

  test('compares sites even if Postgres cannot hold the id of one of them, or its company', async () => {
    const { company, site } = ids;
    const held = everything();
    await store(held);
    const resources = ['sites'] as const;
    held['/company'] = [{ id: company, name: 'Acme', sites: [{ id: site }, { id: 'a\u0000b' }] }];
    expect(await auditOf(held, defaultEndpoints, { resources })).toMatchObject({
      examples: [{ id: site, state: 'different' }],
    });
    held['/company'] = [`{"id":"${company}","factor":1e200000,"sites":[{"id":"${site}"}]}`];
    const { differences, examples } = await auditOf(held, defaultEndpoints, { resources });
    expect([differences, examples]).toMatchObject([1, [{ id: company, state: 'missing' }]]);
  });

  test('finds no difference in records in which characters had to be replaced, and a repair writes nothing', async () => {
    const { meter } = ids;
    const odd = (record: object) => ({ ...record, note: 'a\u0000b', 'c\ud800': [{ d: '\udc00' }] });
    const held: Record<string, readonly object[]> = Object.fromEntries(
      Object.entries(completeRecords()).map(([path, records]) => [
        path,
        records.map((record) => odd(record as object)),
      ]),
    );
    const [company] = held['/company'] as { sites: object[] }[];
    held['/company'] = [{ ...company, sites: (company?.sites ?? []).map(odd) }];
    held[`/interval/meter/${meter}`] = [{ ...reading(1, '1'), quality: 'a\u0000b' }];
    await store(held);
    const { differences, resources } = await auditOf(held);
    expect(differences).toBe(0);
    // Each record has three such texts, and the record of the company also has the texts of its site.
    const unreadable = Object.entries(resources).map(([name, counts]) => [name, counts.unreadable]);
    expect(Object.fromEntries(unreadable)).toEqual({
      companies: 6,
      sites: 3,
      connections: 3,
      documents: 3,
      usageData: 3,
      meters: 3,
      intervals: 1,
    });
    expect(await repairOf(held)).toMatchObject({ differences: 0 });
    await warehouse.db.execute(sql`update utility.documents set unreadable = null`);
    await warehouse.db.execute(sql`update utility.sites set name = 'x', raw = raw || '{"note": "ab"}'`);
    expect(await auditOf(held)).toMatchObject({ differences: 2 });
    await repairOf(held);
    expect(await auditOf(held)).toMatchObject({ differences: 0 });
  });

  test('names records without an id as the table of rejected records does, and says why they are refused', async () => {
    const { company, site } = ids;
    const held = everything();
    held['/company'] = [{ id: company, name: 'Acme', sites: [{ id: site }, { name: 'no id' }] }];
    held[`/document/company/${company}`] = ['{"note":"no id"}', '17'];
    held[`/usage/company/${company}`] = [];
    await repairOf(held);
    const { differences, examples, resources } = await auditOf(held);
    expect(differences).toBe(3);
    expect(resources.companies).toMatchObject({ different: 0, unreadable: 1 });
    expect(resources.sites).toMatchObject({ missing: 0 });
    const { rows } = await warehouse.db.execute<{ record: string; record_id: string }>(
      sql`select record, record_id from metersync.rejected_records`,
    );
    const refused = new Map(rows.map(({ record, record_id }) => [record, record_id]));
    expect(examples).toEqual(
      expect.arrayContaining([
        ...[
          { resource: 'documents', id: refused.get('{"note":"no id"}') },
          { resource: 'documents', id: refused.get('17') },
        ].map((one) =>
          expect.objectContaining({ ...one, state: 'missing', refused: expect.stringMatching(/./) }),
        ),
        expect.objectContaining({ resource: 'documents', id: company, state: 'suspect' }),
      ]),
    );
  });

  test('counts readings without a place in time as missing, and says why', async () => {
    const { meter } = ids;
    const held = everything();
    const odd = [{ start: '2026-05-01T07:00:00', usage: '9' }, '17', { id: 'r-1' }];
    held[`/interval/meter/${meter}`] = [reading(1, '1'), ...odd];
    const { run, activities, ...at } = await activitiesOn((asked) => answer(held, asked));
    await run(activities.readCompany, { runId: randomUUID(), companyId: ids.company });
    const only = { warehouse: at.warehouse, resources: ['intervals'] } as const;
    const { resources, examples } = await auditOf(held, defaultEndpoints, only);
    expect(resources.intervals).toMatchObject({ compared: 4, missing: 3, extra: 0 });
    const why = { state: 'missing', refused: 'the reading has no place in time' };
    expect(examples).toMatchObject([why, why, { ...why, id: `${meter}@r-1` }]);
  });

  test('counts readings that no row of the meter can hold as missing, and says why', async () => {
    const { meter } = ids;
    const held = everything();
    const odd = [
      { ...reading(4, '4'), meterId: 'another' },
      { ...reading(5, '5'), start: '2026-05-01T05:00:00\ud800' },
      { ...reading(6, '6'), end: reading(6, '6').start },
    ];
    held[`/interval/meter/${meter}`] = [{ ...reading(1, '1'), meterId: meter.toUpperCase() }, ...odd];
    const { run, activities, ...at } = await activitiesOn((asked) => answer(held, asked));
    await run(activities.readCompany, { runId: randomUUID(), companyId: ids.company });
    const sides = { warehouse: at.warehouse, resources: ['intervals'] } as const;
    const missing = {
      resources: { intervals: { compared: 4, missing: 3, extra: 0, different: 0 } },
      examples: [
        { id: `${meter}@2026-05-01T04:00:00`, refused: 'the reading names another meter, another' },
        {
          id: `${meter}@2026-05-01T05:00:00\ufffd`,
          refused: String.raw`Cannot read "2026-05-01T05:00:00\ud800" as a time.`,
        },
        { id: `${meter}@2026-05-01T06:00:00`, refused: 'The reading ends where it begins, or before.' },
      ],
    };
    expect(await auditOf(held, defaultEndpoints, sides)).toMatchObject(missing);
    await repairOf(held, sides);
    expect(await auditOf(held, defaultEndpoints, sides)).toMatchObject(missing);
  });

  test.each([
    ['finds a missing reading', 'missing', [1, 2, 4], 1],
    ['calls no reading extra', 'extra', [1, 2, 3, 4, 5], 3],
  ])('finds %s that moves to a page that was read', async (_name, state, stored, movesAfter) => {
    const { meter } = ids;
    const path = `/interval/meter/${meter}`;
    const readings = (hours: readonly number[]) => hours.map((hour) => reading(hour, '1'));
    await store({ ...everything(), [path]: readings(stored) });
    const held = readings([1, 2, 3, 4]);
    let pages = 0;
    const { client } = await setup((asked) => {
      if (!asked.path.includes(path)) return answer(everything(), asked);
      const page = pageOf(held, asked, { key: 'intervals', total: 'totalIntervals', perPage: 2 });
      pages += 1;
      if (pages === movesAfter) held.push(...held.splice(0, 1));
      return page;
    });
    expect(await audit({ warehouse, service: client, concurrency: 8 })).toMatchObject({
      differences: 1,
      resources: { intervals: { compared: 4, [state]: 1 } },
    });
  });

  test('finds an extra reading even if the service lists another reading on two pages', async () => {
    const { meter } = ids;
    const held = everything();
    const many = Array.from({ length: 100 }, (_, hour) => {
      const at = (minute: number) => new Date(Date.UTC(2026, 4, 1, hour, minute)).toISOString();
      return { ...reading(1, '1'), start: at(0), end: at(15) };
    });
    held[`/interval/meter/${meter}`] = [...many, many[99] ?? {}];
    await store(held);
    await warehouse.db.execute(sql`
      insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, synced_at)
      values (${meter}, '2026-05-20', 900, 'kWh', '2026-06-01')`);
    expect(await auditOf(held)).toMatchObject({
      differences: 1,
      examples: [{ id: expect.stringContaining('2026-05-20'), resource: 'intervals', state: 'extra' }],
    });
  });

  test('finds no difference in a reading that the service spells differently', async () => {
    const held = everything();
    await store(held);
    held[`/interval/meter/${ids.meter}`] = [reading(1, '1.00'), reading(2, '2'), reading(3, '3')];
    expect(await auditOf(held)).toMatchObject({ differences: 0, resources: { intervals: { compared: 3 } } });
  });

  test('finds an extra reading next to readings that Postgres cannot hold', async () => {
    const { meter } = ids;
    const held = everything();
    await store(held);
    const odd = [
      reading(4, '1e200000'),
      reading(5, 'no number'),
      { ...reading(6, '6'), start: '2026-04-31' },
    ];
    held[`/interval/meter/${meter}`] = [reading(1, '1e200000'), ...odd, reading(3, '3')];
    expect((await auditOf(held)).resources.intervals).toMatchObject({
      compared: 5,
      missing: 3,
      unreadable: 3,
      extra: 1,
    });
  });

  test('calls a listing suspect that contradicts itself or never ends, and none of its rows extra', async () => {
    const { company, meter } = ids;
    await store(everything());
    const fewer = { ...everything(), [`/interval/meter/${meter}`]: [reading(1, '1')] };
    fewer[`/document/company/${company}`] = (fewer[`/document/company/${company}`] ?? []).slice(0, 1);
    const shows = (asked: Asked, page: object): Reply => {
      const { body } = answer(fewer, asked) as { body: string };
      return /document|interval/.test(asked.path) ? { json: { ...JSON.parse(body), ...page } } : { body };
    };
    const totals = { totalDocuments: 300, totalIntervals: 300 };
    const short = await setup((asked) => shows(asked, totals));
    const sides = { warehouse, service: short.client, concurrency: 8 };
    const found = [
      { resource: 'documents', id: company, reason: '1 distinct record of a total of 300' },
      { resource: 'intervals', id: meter, reason: '1 readings of a total of 300' },
    ].map((listing) => ({ ...listing, state: 'suspect' }));
    expect(await audit(sides)).toMatchObject({ differences: 2, examples: found });
    await repair({ ...sides, apiVersion: 'v2.2' });
    expect(await auditOf(everything())).toMatchObject({ differences: 0 });

    const stuck = await setup((asked) => shows(asked, { totalPages: 2, currentPage: 1, hasNext: true }));
    expect(await audit({ ...sides, service: stuck.client })).toMatchObject({
      differences: 2,
      examples: [
        {
          resource: 'documents',
          reason: expect.stringContaining('1 of 2 pages was not the requested page'),
        },
        { resource: 'intervals', reason: 'the last page was not reached' },
      ],
    });
  });

  test('reports a suspect listing that it had to read even if other resources are compared', async () => {
    await store(everything());
    const { client } = await setup((asked) => {
      const { body } = answer(everything(), asked) as { body: string };
      const isMeters = asked.path.startsWith('/v2.2/meter/');
      return isMeters ? { json: { ...JSON.parse(body), totalMeters: 2 } } : { body };
    });
    const only = ['intervals'] as const;
    const report = await audit({ warehouse, service: client, concurrency: 8, resources: only });
    expect(report).toMatchObject({ differences: 1, resources: { meters: { suspect: 1 } } });
    const rows = describeAudit(report, { resource: only }).filter((line) =>
      /│ *(meters|intervals|documents) /.test(line),
    );
    expect(rows).toEqual([expect.stringContaining('meters'), expect.stringContaining('intervals')]);
  });

  test('reads a listing again that changed while it was read, and counts only the second pass', async () => {
    await store(everything());
    const changing = { document: 1, interval: 1 };
    const { client } = await setup((asked) => {
      const { body } = answer(everything(), asked) as { body: string };
      for (const kind of ['document', 'interval'] as const) {
        if (!asked.path.startsWith(`/v2.2/${kind}/`) || changing[kind]-- <= 0) continue;
        return { json: { ...JSON.parse(body), [`${kind}s`]: [], currentPage: 2 } };
      }
      return { body };
    });
    expect(await audit({ warehouse, service: client, concurrency: 8 })).toMatchObject({
      compared: 11,
      differences: 0,
    });
  });

  test('reads records that differ again after a wait, and does not count a change that arrives meanwhile', async () => {
    const { company, meter } = ids;
    await store(everything());
    // When it is read for the first time, each listing shows a state that the warehouse does not have yet.
    const seen = new Set<string>();
    const { client } = await setup((asked) => {
      const isFirst = !seen.has(asked.path);
      seen.add(asked.path);
      return answer(isFirst ? otherwise() : everything(), asked);
    });
    const compared = { warehouse, service: client, concurrency: 8 };
    expect(await audit({ ...compared, settleMs: 1 })).toMatchObject({ compared: 11, differences: 0 });
    seen.clear();
    expect((await audit(compared)).differences, 'without a wait').toBeGreaterThan(0);
    expect([...seen]).toEqual(
      expect.arrayContaining([`/v2.2/document/company/${company}`, `/v2.2/interval/meter/${meter}`]),
    );
    const held = otherwise();
    expect(await auditOf(held, defaultEndpoints, { settleMs: 1 })).toEqual(await auditOf(held));
  });

  test('stops waiting after several waits that changed nothing', async () => {
    const { company } = ids;
    const meters = Array.from({ length: 9 }, () => ({ id: randomUUID() }));
    const held: Held = { '/company': [{ id: company, sites: [] }], [`/meter/company/${company}`]: meters };
    for (const { id } of meters) held[`/interval/meter/${id}`] = [reading(1, '1')];
    await store({ ...held, [`/interval/meter/${ids.meter}`]: [] });
    let requests = 0;
    const { client } = await setup((asked) => {
      requests += Number(asked.path.includes('/interval/'));
      return answer(held, asked);
    });
    const resources = ['intervals'] as const;
    const report = await audit({ warehouse, service: client, concurrency: 1, resources, settleMs: 1 });
    expect(report.differences).toBe(meters.length);
    expect(requests).toBe(meters.length + attemptPolicy.settlesMax);
  });

  test('compares the companies or meters of the warehouse if there is no list of them', async () => {
    await store(everything());
    const report = await auditOf(everything(), { ...defaultEndpoints, companies: null });
    expect(report).toMatchObject({ differences: 0, compared: 9 });
    const meters = await auditOf(everything(), { ...defaultEndpoints, meters: null });
    expect(meters).toMatchObject({ differences: 0, resources: { intervals: { compared: 3 } } });
  });

  test('counts an unlisted company as extra unless the settings name it or its records were read', async () => {
    await store(everything());
    const [named, read, typed] = [randomUUID(), randomUUID(), randomUUID()];
    const bill = randomUUID();
    for (const id of [named, read, typed])
      await warehouse.db.execute(sql`insert into utility.companies (id, first_synced_at)
        values (${id}, now() - interval '1 day')`);
    // A company that the list contained earlier.
    const left = randomUUID();
    const leftWith = [{ id: left, sites: [{ id: randomUUID() }] }];
    await writeRecords(warehouse, 'companies', leftWith);
    await writeRecords(warehouse, 'sites', leftWith);
    await writeRecords(warehouse, 'documents', [{ id: bill }], { companyId: read });
    const others = ['connection', 'usage', 'meter'].map((of) => [`/${of}/company/${read}`, []]);
    const now: Held = { ...everything(), ...Object.fromEntries(others) };
    now[`/document/company/${read}`] = [{ id: bill }];
    const configured = [named, left, ids.company];
    expect(await auditOf(now, defaultEndpoints, { configured })).toMatchObject({
      differences: 1,
      examples: [{ id: typed, resource: 'companies', state: 'extra' }],
    });
    await warehouse.db.execute(sql`insert into utility.sites (id, company_id, first_synced_at)
      values (${randomUUID()}, ${ids.company}, now() - interval '1 day')`);
    await repairOf(now, { configured });
    expect(await auditOf(now, defaultEndpoints, { configured })).toMatchObject({ differences: 0 });
    const { rowCount } = await warehouse.db.execute(sql`select from utility.sites
      where company_id = ${left} and deleted_at is null`);
    expect(rowCount).toBe(1);
    const gone = { ...now, [`/document/company/${read}`]: [] };
    expect(await auditOf(gone, defaultEndpoints, { configured })).toMatchObject({
      examples: [{ id: bill, resource: 'documents', state: 'extra' }],
    });
  });

  test('finds no extra site in a company whose record has no list of sites', async () => {
    const { company, site } = ids;
    const held = { ...everything(), '/company': [{ id: company, name: 'Acme' }] };
    await store(held);
    await warehouse.db.execute(sql`insert into utility.sites (id, company_id) values (${site}, ${company})`);
    expect(await auditOf(held)).toMatchObject({ differences: 0, examples: [] });
    const listing = { ...held, '/company': [{ id: company, name: 'Acme', sites: [] }] };
    await store(listing);
    expect(await auditOf(listing)).toMatchObject({
      differences: 1,
      examples: [{ id: site, resource: 'sites', state: 'extra' }],
    });
  });

  test('counts the readings of a meter as extra only if no audited company lists the meter', async () => {
    const { company, meter } = ids;
    const other = randomUUID();
    const held: Held = { ...everything(), [`/meter/company/${company}`]: [{ id: meter, company: other }] };
    held['/company'] = [...(held['/company'] ?? []), { id: other, sites: [] }];
    for (const kind of ['connection', 'usage', 'meter', 'document']) held[`/${kind}/company/${other}`] = [];
    await store(held);
    expect(await auditOf(held)).toMatchObject({ differences: 0, examples: [] });
    const none = { ...held, [`/meter/company/${company}`]: [] };
    expect(await auditOf(none)).toMatchObject({
      differences: 2,
      examples: ['meters', 'intervals'].map((resource) => ({ resource, id: meter, state: 'extra' })),
    });
  });

  test('counts a row without a company as extra in an audit of all companies unless a listing has it', async () => {
    const { company, documents, meter } = ids;
    await store(everything());
    const [listed, unlisted] = documents;
    await warehouse.db.execute(sql`
      update utility.documents set company_id = null where id = any(array[${listed}, ${unlisted}]::uuid[])`);
    await warehouse.db.execute(sql`update utility.meters set company_id = null`);
    const path = `/document/company/${company}`;
    const now: Held = { ...everything(), [`/meter/company/${company}`]: [] };
    now[path] = (now[path] ?? []).filter((record) => (record as { id: string }).id !== unlisted);
    now[`/interval/meter/${meter}`] = [];
    const found = {
      differences: 4,
      examples: [
        { id: meter, resource: 'meters', state: 'extra' },
        ...[listed, unlisted]
          .toSorted()
          .map((id) => ({ id, resource: 'documents', state: id === listed ? 'different' : 'extra' })),
        { id: meter, resource: 'intervals', state: 'extra' },
      ],
    };
    // The usage of a document belongs to the company of the document, whichever it is, and is repaired with it.
    const { differences, examples } = await auditOf(now);
    expect(differences).toBe(5);
    expect(examples.filter(({ resource }) => resource !== 'usageData')).toMatchObject(found.examples);
    expect(await auditOf(now, defaultEndpoints, { companyId: company })).toMatchObject({ differences: 2 });
    expect(await repairOf(now)).toMatchObject(found);
    expect(await auditOf(now)).toMatchObject({ differences: 0 });
  });

  test('counts a record that no listing has as extra, even if no audit covers its company', async () => {
    const { company } = ids;
    const stray = randomUUID();
    const held = everything();
    const listing = `/document/company/${company}`;
    const bill = { id: stray, created: updated, updated, company: randomUUID() };
    const before = { ...held, [listing]: [...(held[listing] ?? []), bill] };
    await store(before);
    expect(await auditOf(before)).toMatchObject({ differences: 0 });
    expect(await auditOf(held)).toMatchObject({
      differences: 1,
      examples: [{ id: stray, resource: 'documents', state: 'extra' }],
    });
  });

  test('counts live rows of a deleted company, and a repair tombstones them', async () => {
    const { company } = ids;
    await store(everything());
    await warehouse.db.execute(sql`
      update utility.companies set deleted_at = now(), deleted_reason = 'absent'`);
    await warehouse.db.execute(sql`update utility.sites set deleted_at = now(), deleted_reason = 'absent'`);
    const other = randomUUID();
    const now: Held = { '/company': [{ id: other, sites: [] }], [`/interval/meter/${ids.meter}`]: [] };
    for (const kind of ['connection', 'usage', 'meter', 'document']) now[`/${kind}/company/${other}`] = [];
    await writeRecords(warehouse, 'companies', now['/company'] ?? []);
    const { differences, resources } = await auditOf(now);
    const { connections, documents, usageData, meters, intervals } = resources;
    const extra = [connections, documents, usageData, meters, intervals].map((counts) => counts.extra);
    expect([differences, ...extra]).toEqual([7, 1, 3, 1, 1, 1]);
    expect(await auditOf(now, defaultEndpoints, { companyId: other })).toMatchObject({ differences: 0 });
    expect(await auditOf(now, defaultEndpoints, { configured: [company] })).toMatchObject({ differences: 0 });
    await repairOf(now);
    expect(await auditOf(now)).toMatchObject({ differences: 0 });
  });

  test('lists the events behind a difference', async () => {
    await store(everything());
    const [, , third = ''] = ids.documents;
    const payload = { ...documentEvent('updated', third, updated), company: { id: ids.company } };
    const event = delivery(payload);
    await recordEvents(warehouse.db, [event]);
    const report = await auditOf(otherwise());
    const found = report.examples.find(({ id }) => id === third);
    expect(found?.events).toMatchObject([{ id: event.id, type: 'document.updated.v2', outcome: 'pending' }]);
  });

  test('compares only some resources', async () => {
    await store(everything());
    const { resources, compared, differences } = await auditOf(otherwise(), defaultEndpoints, {
      resources: ['intervals', 'connections'],
    });
    expect({ compared, differences }).toEqual({ compared: 4, differences: 3 });
    expect(resources.documents.compared).toBe(0);
  });

  test('compares only later changes and readings with --since', async () => {
    await store(everything());
    const later = { resources: ['documents', 'intervals'] as const, since: '2026-05-01T03:00:00Z' };
    const report = await auditOf(otherwise(), defaultEndpoints, later);
    expect(report.resources.documents).toMatchObject({ missing: 0, extra: 0, different: 0 });
    expect(report.resources.intervals).toEqual({
      compared: 1,
      unread: 0,
      missing: 1,
      extra: 1,
      different: 0,
      suspect: 0,
      kept: 0,
      unreadable: 0,
    });
  });
});

describe('an audit that reads several listings at once', () => {
  const companies = Array.from({ length: 6 }, () => randomUUID()).sort();
  const meters = (company: string) => Array.from({ length: 8 }, (_, at) => ({ id: `${company}/m${at}` }));
  const resources = ['documents', 'intervals'] as const;

  /**
   * Makes companies with ten documents each that the warehouse lacks. Of each meter one reading is missing in
   * the warehouse, one is different and one is extra.
   */
  async function manyCompanies(): Promise<Held> {
    const held: Record<string, readonly object[]> = { '/company': companies.map((id) => ({ id })) };
    for (const company of companies) {
      held[`/document/company/${company}`] = Array.from({ length: 10 }, () => ({
        id: randomUUID(),
        updated,
      }));
      held[`/meter/company/${company}`] = meters(company);
      await writeRecords(warehouse, 'meters', meters(company), { companyId: company });
      for (const { id } of meters(company)) {
        held[`/interval/meter/${encodeURIComponent(id)}`] = [reading(1, '1'), reading(2, '2')];
        const body = JSON.stringify([reading(1, '1.5'), reading(3, '3')]);
        await writeReadings(warehouse, id, began(1), readIntervals(body, null));
      }
    }
    return held;
  }

  test('uses all allowed requests in flight, and reports the same as a sequential audit', async () => {
    const held = await manyCompanies();
    const sequential = await auditOf(held, defaultEndpoints, { resources, concurrency: 1 });
    expect(sequential).toMatchObject({ compared: 60 + 96, differences: 60 + 48 * 3 });
    expect(sequential.examples).toHaveLength(50);

    const doors = { document: createDoor(), interval: createDoor() };
    const { client, server } = await setup(async (asked) => {
      if (asked.path.includes('/document/')) await doors.document.pass();
      if (asked.path.includes('/interval/')) await doors.interval.pass();
      return answer(held, asked);
    });
    const progress: { companies: number; compared: number }[] = [];
    const onProgress = (now: (typeof progress)[number]) => void progress.push(now);
    const auditing = audit({ warehouse, service: client, concurrency: 5, resources, onProgress });
    await until('five companies are being read', () => doors.document.waiting === 5);
    doors.document.open();
    await until('five meters are being read', () => doors.interval.waiting === 5);
    doors.interval.open();
    expect(await auditing).toEqual(sequential);
    expect(server.inFlightMax).toBe(5);
    expect(progress.at(-1)).toEqual({ companies: 6, compared: sequential.compared });
    expect(progress).toEqual(
      progress.toSorted((a, b) => a.compared - b.compared || a.companies - b.companies),
    );

    expect(await repairOf(held, { resources })).toMatchObject({ differences: sequential.differences });
    expect(await auditOf(held, defaultEndpoints, { resources })).toMatchObject({ differences: 0 });
  });

  test('goes on after a company or a meter that the service refuses to show, and reports it as unread', async () => {
    const held = await manyCompanies();
    const [ghost = '', other = ''] = companies;
    for (const listing of ['document', 'meter']) delete held[`/${listing}/company/${ghost}`];
    const meterId = `${other}/m3`;
    delete held[`/interval/meter/${encodeURIComponent(meterId)}`];
    const found = {
      differences: 50 + 39 * 3 + 3,
      resources: {
        documents: { missing: 50, unread: 1 },
        meters: { unread: 1 },
        intervals: { missing: 39, extra: 39, different: 39, unread: 1 },
      },
    };
    const report = await auditOf(held, defaultEndpoints, { resources });
    expect(report).toMatchObject(found);
    const refused = [
      { resource: 'meters', id: ghost },
      { resource: 'documents', id: ghost },
      { resource: 'intervals', id: meterId },
    ].map((listing) => ({ ...listing, state: 'unread', reason: expect.stringContaining('404') }));
    expect(report.examples.slice(0, 3)).toMatchObject(refused);
    const lines = describeAudit(report, { resource: resources });
    expect(lines.join('\n')).toContain(`unread: documents ${ghost}\n    the listing was refused: `);
    expect(lines.find((line) => line.includes('compared'))).toContain('unread');

    expect(await repairOf(held, { resources })).toMatchObject(found);
    const after = await auditOf(held, defaultEndpoints, { resources });
    expect(after).toMatchObject({ differences: 3, examples: refused });
  });

  test('holds no connection while it waits for the service, and needs no more than one for each listing', async () => {
    const held = await manyCompanies();
    const [companyId = ''] = companies;
    const door = createDoor();
    const { client } = await setup(async (asked) => {
      if (asked.path.includes('/interval/')) await door.pass();
      return answer(held, asked);
    });
    const concurrency = warehouse.pool.options.max;
    const auditing = audit({ warehouse, service: client, concurrency, companyId, resources });
    await until('each listing waits for the service', () => door.waiting === meters(companyId).length);
    expect(warehouse.pool.idleCount).toBe(warehouse.pool.totalCount);
    door.open();
    expect((await auditing).resources.intervals).toMatchObject({ missing: 8, extra: 8, different: 8 });
  });

  test('ends all walks when the service refuses the key', async () => {
    const held = await manyCompanies();
    const door = createDoor();
    const { client, server } = await setup(async (asked) => {
      if (asked.path.includes(`/document/company/${companies[2]}`)) {
        await until('the others wait', () => door.waiting === 5);
        return { status: 401, json: { detail: 'the key is inactive' } };
      }
      if (asked.path.includes('/document/')) await door.pass();
      return answer(held, asked);
    });
    const failure = await rejection(audit({ warehouse, service: client, concurrency: 6, resources }));
    expect(failure).toMatchObject({ code: 'SERVICE_KEY_REFUSED' });
    // One request for the list of companies and one for each company: none was tried again, and none waits.
    expect(server.asked).toHaveLength(7);
    await until('no request is left', () => server.inFlight === 0);
  });
});

describe('a repair', () => {
  test('makes the warehouse equal to the service, and reports what it found', async () => {
    await store(everything());
    const now = otherwise();
    const found = await repairOf(now);
    // The usage of the deleted document is still listed. It is tombstoned with its document and then missing.
    expect(found.differences).toBe(7);
    expect(await auditOf(now)).toMatchObject({ differences: 0 });
    expect(await repairOf(now)).toMatchObject({ differences: 0 });
    // One record and one reading.
    expect(await undoDeletes(warehouse.db, found.runId)).toMatchObject({ revived: 2 });
  });

  test('and a later audit count separately from the differences what somebody decided to keep', async () => {
    await store(everything());
    const now = otherwise();
    const { runId } = await repairOf(now);
    await repairOf(now);
    const { db } = warehouse;
    const undo = {
      actor: 'ada',
      role: 'operator',
      source: 'command',
      action: 'deletes undo',
      target: { run: runId },
    } as const;
    await recorded(
      db,
      undo,
      () => undoDeletes(db, runId),
      () => 'done',
    );
    const keeps = {
      differences: 0,
      examples: [],
      kept: { rows: 2, decisions: [{ runId, state: 'undone', by: 'ada', rows: 2 }] },
      resources: { documents: { extra: 0, kept: 1 }, intervals: { extra: 0, kept: 1 } },
    };
    expect(await auditOf(now)).toMatchObject(keeps);
    expect(await repairOf(now)).toMatchObject(keeps);
    const said = describeAudit(await auditOf(now));
    expect(said.at(-3)).toBe(
      '2 rows are kept although the service no longer has them. They do not count as differences, by decision of:',
    );
    expect(said.at(-2)).toMatch(new RegExp(`^ +ada, 20.+Z: metersync deletes list ${runId}$`));
    expect(said.at(-1)).toMatch(/^0 differences in /);
    await db.execute(sql`
      insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, synced_at)
      values (${ids.meter}, '2026-05-01T03:00:00Z', 900, 'kW', now())`);
    const ofAnotherUnit = { resource: 'intervals', state: 'extra', id: expect.stringContaining('/kW') };
    expect(await auditOf(now)).toMatchObject({ differences: 1, examples: [ofAnotherUnit] });
  });

  test('and a later audit count separately the records of a company that somebody decided to keep', async () => {
    const other = { id: randomUUID(), name: 'Other', sites: [] };
    const none = {
      [`/connection/company/${other.id}`]: [],
      [`/document/company/${other.id}`]: [],
      [`/usage/company/${other.id}`]: [],
      [`/meter/company/${other.id}`]: [],
    };
    const before = { ...everything(), ...none };
    before['/company'] = [...(before['/company'] ?? []), other];
    await store(before);
    await warehouse.db.execute(sql`
      insert into metersync.deletes (run_id, resource, record_id, reason, state, absent_since, noted_at, decided_at)
      values (${randomUUID()}, 'companies', ${ids.company}, 'absent', 'rejected', now(), now(), now())`);
    const { differences, kept, resources } = await auditOf({ '/company': [other], ...none });
    expect({ differences, rows: kept.rows }).toEqual({ differences: 0, rows: 9 });
    expect(resources.documents.kept).toBe(3);
  });

  test.each(['connections', 'intervals'] as const)(
    'of %s makes checks of the company due again',
    async (resource) => {
      const { company, connection, meter } = ids;
      const checked = async () => {
        await refreshDataIssues(warehouse.db, [company]);
        await warehouse.db.execute(sql`delete from metersync.company_changes`);
        // As if the check had been an hour ago.
        await warehouse.db.execute(
          sql`update metersync.data_checks set seen_until = now() - interval '1 hour'`,
        );
      };
      const due = async () => {
        await deleteOutdatedChecks(warehouse.db, []);
        const all = { runId: randomUUID(), kinds: checkKinds };
        return (await companiesToCheck(warehouse.db, all)).map(({ id }) => id);
      };
      await store(everything());
      await checked();
      expect((await repairOf(everything(), { resources: [resource] })).differences).toBe(0);
      expect(await due()).toEqual([]);
      const now = everything();
      now[`/connection/company/${company}`] = [{ id: connection, status: 'ERROR', url: 'x', updated }];
      now[`/interval/meter/${meter}`] = [reading(1, '1'), reading(2, '2')];
      await checked();
      expect((await repairOf(now, { resources: [resource] })).differences).toBe(1);
      expect(await due()).toEqual([company]);
    },
  );

  test('tombstones a record that two companies listed as soon as neither lists it', async () => {
    const { company, documents } = ids;
    const other = randomUUID();
    const [, shared = ''] = documents;
    const [own, theirs] = [`/document/company/${company}`, `/document/company/${other}`];
    const held: Held = { ...everything(), [theirs]: [{ id: randomUUID() }, { id: shared, updated }] };
    held['/company'] = [...(held['/company'] ?? []), { id: other, sites: [] }];
    for (const kind of ['connection', 'usage', 'meter']) held[`/${kind}/company/${other}`] = [];
    await store(held);
    await writeRecords(warehouse, 'documents', held[theirs] ?? [], { companyId: other });
    const now: Held = { ...held };
    for (const path of [own, theirs])
      now[path] = (held[path] ?? []).filter((record) => (record as { id: string }).id !== shared);
    expect(await repairOf(now)).toMatchObject({
      differences: 1,
      examples: [{ id: shared, resource: 'documents', state: 'extra' }],
    });
    expect(await auditOf(now)).toMatchObject({ differences: 0 });
  });

  test('sees an unlisted record that gets another owner while the listing of that owner is compared', async () => {
    // The company with the least id owns a record that several companies list.
    const other = 'ffffffff-ffff-4fff-8fff-ffffffffffff';
    await store(everything());
    await writeRecords(warehouse, 'companies', [{ id: other }]);
    const [shared = ''] = ids.documents;
    await writeRecords(warehouse, 'documents', [{ id: shared, updated }], { companyId: other });
    const client = await warehouse.pool.connect();
    onTestFinished(() => client.release(true));
    const query = client.query.bind(client) as (...statement: unknown[]) => Promise<unknown>;
    /** After each statement, the listing of the owner was read, and the record gets its other owner. */
    const movesAfter = async (...statement: unknown[]) => {
      const answer = await query(...statement);
      const owner = { resource: 'documents', companyId: ids.company } as const;
      await forgetListed(warehouse.db, owner, { ids: ids.documents.slice(1), beganAt: 'now' });
      return answer;
    };
    const db = drizzle(Object.assign(client, { query: movesAfter }));
    expect(await unlistedRows(db, 'documents', other, [])).toMatchObject([{ id: shared }]);
    expect(await rowOf(warehouse, 'documents', shared)).toMatchObject({ company_id: other });
  });

  test('tombstones and restores usage with its document if the service has no listing of usage', async () => {
    const path = `/document/company/${ids.company}`;
    await store(everything());
    const now: Held = { ...everything(), [path]: (everything()[path] ?? []).slice(1) };
    const endpoints = { ...defaultEndpoints, usageData: null };
    const usage = async () =>
      (await warehouse.db.execute(sql`select deleted_reason as reason from utility.usage_data`)).rows;
    expect(await repairOf(now, {}, endpoints)).toMatchObject({ differences: 1 });
    expect(await usage()).toEqual([{ reason: 'document' }]);
    expect(await repairOf(everything(), {}, endpoints)).toMatchObject({ differences: 1 });
    expect(await usage()).toEqual([{ reason: null }]);
  });

  test('finds usage that the records of documents list, and has the next backfill write it', async () => {
    const { company, usage } = ids;
    const path = `/document/company/${company}`;
    const [first, ...others] = everything()[path] ?? [];
    const other = randomUUID();
    const usageData = [{ id: other, usage: '2.20' }];
    const held: Held = { ...everything(), [path]: [{ ...(first as object), usageData }, ...others] };
    await store(held);
    const endpoints = { ...defaultEndpoints, usageData: null };
    expect(await auditOf(held, endpoints)).toMatchObject({
      differences: 2,
      resources: { usageData: { extra: 1, missing: 1, compared: 1 } },
      examples: expect.arrayContaining([
        expect.objectContaining({ id: usage, state: 'extra' }),
        expect.objectContaining({ id: other, state: 'missing' }),
      ]),
    });
    await repairOf(held, {}, endpoints);
    const read = { companyId: company, readAt: new Date().toISOString() };
    await writeRecords(warehouse, 'documents', held[path] ?? [], read, true);
    expect(await auditOf(held, endpoints)).toMatchObject({ differences: 0 });
  });

  test('tombstones a meter that no listing has, after which its readings do not count', async () => {
    const { company, meter } = ids;
    await store(everything());
    const now: Held = { ...everything(), [`/meter/company/${company}`]: [{ id: 'm-2' }] };
    now['/interval/meter/m-2'] = [];
    expect(await repairOf(now)).toMatchObject({
      differences: 2,
      resources: { meters: { extra: 1, missing: 1 } },
      examples: [{ id: meter }, { id: 'm-2' }],
    });
    expect(await auditOf(now)).toMatchObject({ differences: 0 });
  });

  test('writes the state of the service even over a row of a newer version', async () => {
    await store(everything());
    await warehouse.db.execute(sql`update utility.documents set synced_at = '2026-06-01',
      raw = raw || '{"tampered": true, "updated": "2999-01-01"}'`);
    await warehouse.db.execute(sql`update utility.meters set raw = '{}'`);
    await warehouse.db.execute(sql`update utility.sites set deleted_at = now(), deleted_reason = 'event'`);
    expect((await repairOf(everything())).differences).toBe(5);
    expect(await auditOf(everything())).toMatchObject({ differences: 0 });
  });

  test('reads all times again after the setting of their zone was corrected', async () => {
    await store(everything());
    const corrected = { url: warehouse.url, timeZone: 'Europe/Berlin', max: 8, onError: () => {} };
    const zoned = { warehouse: connectWarehouse(corrected) };
    onTestFinished(() => zoned.warehouse.close());
    const { resources } = await repairOf(everything(), zoned);
    expect(resources).toMatchObject({ documents: { different: 3 }, intervals: { missing: 2, extra: 2 } });
    expect(await auditOf(everything(), defaultEndpoints, zoned)).toMatchObject({ differences: 0 });
  });

  test('does not change a row that an event changed meanwhile', async () => {
    await store(everything());
    const [, , third = ''] = ids.documents;
    let sent = false;
    const { client } = await setup(async (asked) => {
      if (!sent && asked.path.includes('/document/')) {
        sent = true;
        const event = documentEvent('updated', third, '2026-05-02T00:00:00.000001');
        await recordEvents(warehouse.db, [delivery({ ...event, company: { id: ids.company } })]);
      }
      return answer(otherwise(), asked);
    });
    // The page has an older state than the event, which arrived while the page was read.
    await repair({
      warehouse,
      service: client,
      concurrency: 8,
      apiVersion: 'v2.2',
      resources: ['documents'],
    });
    const [row] = (
      await warehouse.db.execute<{ updated: string }>(
        sql`select updated::text from utility.documents where id = ${third}::uuid`,
      )
    ).rows;
    expect(row?.updated).toBe('2026-05-02 00:00:00.000001+00');
  });
});

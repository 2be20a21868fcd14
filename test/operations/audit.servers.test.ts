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
import { type RecordResource, recordResources, tableName } from '../../db/resources.ts';
import { type AuditOptions, type AuditReport, audit, repair } from '../../operations/audit/audit.ts';
import { recorded } from '../../operations/recorded.ts';
import { readIntervals } from '../../service/intervals.ts';
import { createDoor } from '../service/door.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { rejection, setup } from '../service/setup.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { rowOf, writeRecords } from '../support/pages.ts';
import { until } from '../support/poll.ts';
import { began, writeReadings } from '../support/readings.ts';
import { borrowWarehouse, type TestWarehouse } from '../support/warehouse.ts';

/** The service's records by the path below the version; a record may be JSON text. */
type Held = Record<string, readonly (object | string)[]>;

let warehouse: TestWarehouse;
beforeEach(async () => {
  warehouse = await borrowWarehouse();
  onTestFinished(() => warehouse.drop());
});

const id = (hex: string): string => `00000000-0000-4000-8000-${hex.padStart(12, '0')}`;
const [company, other, site, connection, usage, bad] = ['c1', 'c2', '51', 'cc', 'a1', 'bad'].map(id) as [
  string,
  string,
  string,
  string,
  string,
  string,
];
const documents = ['d1', 'd2', 'd3'].map(id);
const [document = '', second = '', third = ''] = documents;
const meter = 'meter-1';
const listingOf = (kind: string, of = company) => `/${kind}/company/${of}`;
const [bills, usages, meters, readings] = [
  listingOf('document'),
  listingOf('usage'),
  listingOf('meter'),
  `/interval/meter/${meter}`,
];

const updated = '2026-05-01T00:00:00.000001';
const reading = (hour: number, amount: string) => ({
  start: `2026-05-01T0${hour}:00:00`,
  end: `2026-05-01T0${hour}:15:00`,
  usage: amount,
  usageUnits: 'kWh',
  quality: 'ACTUAL',
});
const billOf = (documentId: string, more: object = {}) => ({
  id: documentId,
  created: updated,
  updated,
  ...more,
});

const everything: Held = {
  '/company': [{ id: company, name: 'Acme', sites: [{ id: site, name: 'Plant' }] }],
  [listingOf('connection')]: [{ id: connection, status: 'CONNECTED', url: 'x', updated }],
  [bills]: documents.map((one) => billOf(one)),
  [usages]: [{ id: usage, usage: '1.10', updated, document: { id: document } }],
  [meters]: [{ id: meter }],
  [readings]: [reading(1, '1'), reading(2, '2'), reading(3, '3')],
};
const nothingOf = (of: string): Held =>
  Object.fromEntries(['connection', 'document', 'usage', 'meter'].map((kind) => [listingOf(kind, of), []]));
/** The same, and a second company without records. */
const twoCompanies: Held = {
  ...everything,
  '/company': [...(everything['/company'] ?? []), { id: other, sites: [] }],
  ...nothingOf(other),
};
/** The service's records after unreported changes: some are gone, some have changed, and some are new. */
const otherwise: Held = {
  ...everything,
  [bills]: [billOf(second), billOf(third, { note: 'changed' }), billOf(id('d4'))],
  [readings]: [reading(1, '1.5'), reading(2, '2'), reading(4, '4')],
};

/** One record of each resource with values for all of its columns. */
const completeRecords: Held = (() => {
  const sitesRelations = [{ site: { id: site }, accountIds: ['1', '2'], datasourceTypes: ['WATER'] }];
  const dates = { created: '2026-04-01T00:00:00', updated };
  const names = { externalId: 'x-1', publicId: 'p-1' };
  const of = { meter: { id: meter }, document: { id: document, company }, site: { id: site } };
  const period = { startDate: '2026-03-01', endDate: '2026-03-31', usage: '1.10', usageUnits: 'kWh' };
  const connected = { status: 'CONNECTED', url: 'x', datasource: { name: 'P' }, sitesRelations };
  return {
    '/company': [{ id: company, ...names, name: 'Acme', sites: [{ id: site, name: 'Plant' }] }],
    [listingOf('connection')]: [{ id: connection, ...dates, ...names, ...connected }],
    [bills]: [{ id: document, ...dates, company, site: { id: site } }],
    [usages]: [{ id: usage, ...dates, ...of, ...period }],
    [meters]: [{ id: meter, site: { id: site }, account: { id: 'a' }, datasourceType: 'WATER' }],
    [readings]: [{ ...reading(1, '1'), updated }],
  };
})();

const resourcesOfKinds: readonly (readonly [kind: string, resource: RecordResource])[] = [
  ['connection', 'connections'],
  ['document', 'documents'],
  ['usage', 'usageData'],
  ['meter', 'meters'],
];

/** Writes the service's records into the warehouse, as a backfill would. */
async function store(held: Held, at: Pick<TestWarehouse, 'db' | 'pool'> = warehouse): Promise<void> {
  const into = at as TestWarehouse;
  await writeRecords(into, 'companies', held['/company'] ?? []);
  await writeRecords(into, 'sites', held['/company'] ?? []);
  for (const [kind, resource] of resourcesOfKinds)
    for (const [path, records] of Object.entries(held)) {
      const companyId = path.split(`/${kind}/company/`)[1];
      if (companyId !== undefined) await writeRecords(into, resource, records, { companyId });
    }
  for (const [path, records] of Object.entries(held)) {
    const of = path.split('/interval/meter/')[1];
    if (of === undefined) continue;
    const texts = records.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
    await writeReadings(into, decodeURIComponent(of), began(1), readIntervals(`[${texts.join(',')}]`, null));
  }
}

function answer(held: Held, asked: Asked): Reply {
  const records = held[asked.path.replace('/v2.2', '')];
  if (records === undefined) return { json: { detail: 'no such record' }, status: 404 };
  const texts = records.map((record) => (typeof record === 'string' ? record : JSON.stringify(record)));
  if (asked.path.endsWith('/company')) return { body: `[${texts.join(',')}]` };
  const marks = texts.map((_, at) => `mark ${at}`);
  const [, kind = ''] = /^\/v2\.2\/(\w+)\//.exec(asked.path) ?? [];
  const items = kind === 'usage' ? 'usageData' : `${kind}s`;
  const page = pageOf(marks, asked, { key: items, total: `total${items}` }) as { json: unknown };
  return { body: JSON.stringify(page.json).replace(/"mark (\d+)"/g, (_, at) => texts[Number(at)] ?? '') };
}

/** What pages of a kind of records say in place of what is true. */
type Pages = Readonly<Record<string, object>>;

function answerWith(held: Held, pages: Pages, asked: Asked): Reply {
  const [, more] = Object.entries(pages).find(([kind]) => asked.path.startsWith(`/v2.2/${kind}/`)) ?? [];
  const found = answer(held, asked) as { readonly body: string };
  return more === undefined ? found : { json: { ...JSON.parse(found.body), ...more } };
}

interface Side {
  readonly endpoints?: Partial<EndpointCatalogue>;
  readonly options?: Partial<AuditOptions>;
  readonly pages?: Pages;
}

async function sides(held: Held, { endpoints = {}, options = {}, pages = {} }: Side) {
  const catalogue = { ...defaultEndpoints, ...endpoints };
  const { client } = await setup((asked) => answerWith(held, pages, asked), { endpoints: catalogue });
  return { warehouse, service: client, concurrency: 8, ...options };
}
const auditOf = async (held: Held, side: Side = {}) => await audit(await sides(held, side));
const repairOf = async (held: Held, side: Side = {}) =>
  await repair({ ...(await sides(held, side)), apiVersion: 'v2.2' });

interface Case extends Side {
  /** What the warehouse has; `everything` if absent. */
  readonly stored?: Held;
  /** Statements that change the warehouse without the service. */
  readonly tampered?: readonly string[];
  /** What the service has; what was stored if absent. */
  readonly served?: Held;
}

const odd = (record: object) => ({ ...record, note: 'a\u0000b', 'c\ud800': [{ d: '\udc00' }] });
const oddRecords: Held = {
  ...Object.fromEntries(
    Object.entries(completeRecords).map(([path, of]) => [path, (of as object[]).map(odd)]),
  ),
  '/company': (completeRecords['/company'] as { sites: object[] }[]).map((one) =>
    odd({ ...one, sites: one.sites.map(odd) }),
  ),
  [readings]: [{ ...reading(1, '1'), quality: 'a\u0000b' }],
};
const companyLater = (of: string) =>
  `insert into utility.companies (id, first_synced_at) values ('${of}', now() - interval '1 day')`;
const onlySites = { options: { resources: ['sites'] } } as const;
const withoutUsage = { endpoints: { usageData: null } };

const cases: Readonly<Record<string, Case>> = {
  'equals the service': {},
  'has missed changes': { served: otherwise },
  'was tampered with': {
    tampered: [
      `update utility.connections set status = 'PENDING'`,
      `update utility.documents set deleted_at = '2026-06-01' where id = '${second}'`,
      // The same number, which the record spells in another way.
      `update utility.usage_data set raw = raw || '{"usage":"1.1"}'`,
    ],
  },
  'has newer versions than the service': {
    tampered: [
      `update utility.documents set synced_at = '2026-06-01',
        raw = raw || '{"tampered": true, "updated": "2999-01-01"}'`,
      `update utility.meters set raw = '{}'`,
      `update utility.sites set deleted_at = '2026-06-01', deleted_reason = 'event'`,
    ],
  },
  'has a document and its usage under another company': {
    stored: twoCompanies,
    tampered: ['documents', 'usage_data'].map(
      (table) => `update utility.${table} set company_id = '${other}'`,
    ),
  },
  'is compared for one company': {
    stored: {
      ...everything,
      '/company': [...(everything['/company'] ?? []), { id: other }],
      [listingOf('document', other)]: [billOf(bad)],
    },
    served: { ...everything, '/company': [...(everything['/company'] ?? []), { id: bad }] },
    options: { companyId: company },
  },
  'is compared for some resources': {
    served: otherwise,
    options: { resources: ['intervals', 'connections'] },
  },
  'is compared since a time': {
    served: otherwise,
    options: { resources: ['documents', 'intervals'], since: '2026-05-01T03:00:00Z' },
  },
  'lacks records that Postgres cannot hold': {
    tampered: [
      `insert into metersync.rejected_records (resource, record_id, error, record)
        values ('intervals', '${meter}@r-1', 'the reading has no place in time', '{}')`,
    ],
    served: {
      ...everything,
      [bills]: [...(everything[bills] ?? []), `{"id":"${bad}","factor":1e200000}`, '{"note":"no id"}', '17'],
      [readings]: [
        ...(everything[readings] ?? []),
        { ...reading(5, '1'), start: '2026-05-32T05:00:00' },
        { start: '2026-05-01T07:00:00', usage: '9' },
        '17',
        { id: 'r-1' },
        { ...reading(4, '4'), meterId: 'another' },
        { ...reading(5, '5'), start: '2026-05-01T05:00:00\ud800' },
        { ...reading(6, '6'), end: reading(6, '6').start },
        reading(8, '1e200000'),
      ],
    },
  },
  'has columns that cannot hold their values': {
    stored: {
      ...everything,
      [usages]: [
        { id: usage, document: { id: document }, usage: 'N/A', startDate: '2026-02-30', endDate: '' },
      ],
    },
  },
  'has records in which characters were replaced': { stored: oddRecords },
  'lost the notes of replaced characters': {
    stored: oddRecords,
    tampered: [
      'update utility.documents set unreadable = null',
      `update utility.sites set name = 'x', raw = raw || '{"note": "ab"}'`,
    ],
  },
  'has a company with a site whose id Postgres cannot hold': {
    served: {
      ...everything,
      '/company': [{ id: company, name: 'Acme', sites: [{ id: site }, { id: 'a\u0000b' }, { name: 'x' }] }],
    },
    ...onlySites,
  },
  'has a company that Postgres cannot hold now': {
    served: {
      ...everything,
      '/company': [`{"id":"${company}","factor":1e200000,"sites":[{"id":"${site}"}]}`],
    },
    ...onlySites,
  },
  'has an extra reading, and the service lists another one twice': {
    stored: {
      ...everything,
      [readings]: Array.from({ length: 100 }, (_, hour) => {
        const at = (minute: number) => new Date(Date.UTC(2026, 4, 1, hour, minute)).toISOString();
        return { ...reading(1, '1'), start: at(0), end: at(15) };
      }).flatMap((one, at) => (at === 99 ? [one, one] : [one])),
    },
    tampered: [
      `insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, synced_at)
        values ('${meter}', '2026-05-20', 900, 'kWh', '2026-06-01')`,
    ],
  },
  'spells a reading differently': {
    served: { ...everything, [readings]: [reading(1, '1.00'), reading(2, '2'), reading(3, '3')] },
  },
  'is compared with listings that contradict themselves': {
    served: { ...everything, [bills]: [billOf(document)], [readings]: [reading(1, '1')] },
    pages: { document: { totalDocuments: 300 }, interval: { totalIntervals: 300 } },
  },
  'is compared with listings that never end': {
    pages: Object.fromEntries(
      ['document', 'interval'].map((kind) => [kind, { totalPages: 2, currentPage: 1, hasNext: true }]),
    ),
  },
  'is compared with a suspect listing that had to be read': {
    pages: { meter: { totalMeters: 2 } },
    options: { resources: ['intervals'] },
  },
  'is compared with listings that the service refuses': {
    served: Object.fromEntries(
      Object.entries(twoCompanies).filter(
        ([path]) => ![bills, readings, listingOf('meter', other)].includes(path),
      ),
    ),
    stored: twoCompanies,
  },
  'is compared without a list of companies': { endpoints: { companies: null } },
  'is compared without lists of meters': { endpoints: { meters: null } },
  'has companies that the service does not list': {
    stored: {
      ...everything,
      '/company': [...(everything['/company'] ?? []), { id: id('c4'), sites: [{ id: id('54') }] }],
      [listingOf('document', id('c3'))]: [{ id: id('d8') }],
    },
    // The settings name c4 and c5; the records of c3 can be read; nobody knows c6.
    tampered: ['c3', 'c5', 'c6'].map((of) => `${companyLater(id(of))} on conflict do nothing`),
    served: { ...everything, ...nothingOf(id('c3')), [listingOf('document', id('c3'))]: [{ id: id('d8') }] },
    options: { configured: ['c1', 'c4', 'c5'].map(id) },
  },
  'has a site of a company whose record has no list of sites': {
    stored: { ...everything, '/company': [{ id: company, name: 'Acme' }] },
    tampered: [`insert into utility.sites (id, company_id) values ('${site}', '${company}')`],
  },
  'has a site that its company no longer lists': {
    served: { ...everything, '/company': [{ id: company, name: 'Acme', sites: [{ id: id('52') }] }] },
  },
  'has a meter that another company lists': {
    stored: { ...twoCompanies, [meters]: [{ id: meter, company: other }] },
  },
  'has a meter that no company lists': {
    served: { ...everything, [meters]: [{ id: 'meter-2' }], '/interval/meter/meter-2': [] },
  },
  'has rows without a company': {
    tampered: [
      `update utility.documents set company_id = null where id in ('${document}', '${second}')`,
      'update utility.meters set company_id = null',
    ],
    served: { ...everything, [meters]: [], [bills]: [billOf(document), billOf(third)], [readings]: [] },
  },
  'has a record of a company that no audit covers': {
    stored: { ...everything, [bills]: [...(everything[bills] ?? []), billOf(bad, { company: id('c9') })] },
    served: everything,
  },
  'has live rows of a deleted company': {
    stored: twoCompanies,
    tampered: ['companies', 'sites'].map(
      (table) => `update utility.${table} set deleted_at = now(), deleted_reason = 'absent'
        where ${table === 'companies' ? 'id' : 'company_id'} = '${company}'`,
    ),
    served: { '/company': [{ id: other, sites: [] }], ...nothingOf(other), [readings]: [] },
  },
  'has a record that two companies listed': {
    stored: { ...twoCompanies, [listingOf('document', other)]: [billOf(second), billOf(id('d7'))] },
    served: {
      ...twoCompanies,
      [bills]: [billOf(document), billOf(third)],
      [listingOf('document', other)]: [billOf(id('d7'))],
    },
  },
  'has usage of a document that is gone, and no listing of usage': {
    served: { ...everything, [bills]: documents.slice(1).map((one) => billOf(one)) },
    ...withoutUsage,
  },
};

/** Resources that are not equal, and the examples, as people see them. */
function said(report: AuditReport): string[] {
  const counts = Object.entries(report.resources).flatMap(([name, { compared, ...of }]) => {
    const found = Object.entries(of).flatMap(([state, count]) => (count === 0 ? [] : [`${count} ${state}`]));
    return found.length === 0 ? [] : [`${name}: ${compared} compared, ${found.join(', ')}`];
  });
  const lines = describeAudit(report).filter((line) => !/^[┌│├└]/.test(line));
  return [...counts, ...lines];
}

describe('an audit and a repair', () => {
  const sections: string[] = [];

  test.each(Object.entries(cases))('of a warehouse that %s', async (name, given) => {
    const { stored = everything, tampered = [], served = stored, ...side } = given;
    await store(stored);
    for (const statement of tampered) await warehouse.db.execute(sql.raw(statement));
    const found = await auditOf(served, side);
    // What is found is repaired, and a second repair finds only what cannot be repaired.
    await repairOf(served, side);
    const after = await repairOf(served, side);
    sections.push([`# ${name}`, ...said(found), '-- after a repair:', ...said(after)].join('\n'));
  });

  test('say what is in the golden file', async () => {
    expect(sections).toHaveLength(Object.keys(cases).length);
    await expect(`${sections.join('\n\n')}\n`).toMatchFileSnapshot('golden/audits.txt');
  });
});

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

/** Every column of the tables that is computed from a record or from other rows, except ids. */
async function columnsToFalsify() {
  const tables = sql.param([...recordResources.map(tableName), 'connection_sites', 'intervals']);
  const { rows } = await warehouse.db.execute<{ table: string; column: string; type: string }>(sql`
    select table_name as table, column_name as column, data_type as type from information_schema.columns
    where table_schema = 'utility' and is_generated = 'NEVER' and table_name = any(${tables}::text[])
      and column_name not in ('id', 'raw', 'api_version', 'first_synced_at', 'synced_at', 'usage_read_at', 'digest',
        'connection_id', 'absent_since', 'absent_by', 'document_deleted_at')
      and column_name not like 'hint%'
    order by table_name, ordinal_position`);
  return rows.map(({ table, column, type }) => {
    const value = column === 'deleted_reason' ? "'absent'" : otherwiseOf[type]?.(column);
    return {
      column: `${table}.${column}`,
      statement: `update utility.${table} set ${column} = ${value}`,
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

test('names each column that contradicts the record even if raw does not, and a repair corrects it', async () => {
  await store(completeRecords);
  const columns = await columnsToFalsify();
  expect(columns.length).toBeGreaterThan(50);
  // Only one company, because a row of an unknown company would also be extra.
  const only = { options: { companyId: company } };
  for (const { column, statement, found } of columns) {
    await warehouse.db.execute(sql.raw(statement));
    // It would name the column before, too, if the repair before had not corrected it.
    const { examples } = await repairOf(completeRecords, only);
    const named = examples.flatMap(({ resource, state, fields = [] }) =>
      fields.length > 0
        ? fields.map(({ field }) => `${resource} ${state} ${field}`)
        : [`${resource} ${state}`],
    );
    expect([column, ...named.toSorted()]).toEqual([column, ...found]);
  }
  expect(await auditOf(completeRecords)).toMatchObject({ differences: 0 });
});

describe('while the service changes, an audit', () => {
  test.each([
    ['finds a missing reading', 'missing', [1, 2, 4], 1],
    ['calls no reading extra', 'extra', [1, 2, 3, 4, 5], 3],
  ])('%s that moves to a page that was read', async (_name, state, stored, movesAfter) => {
    const ofHours = (hours: readonly number[]) => hours.map((hour) => reading(hour, '1'));
    await store({ ...everything, [readings]: ofHours(stored) });
    const held = ofHours([1, 2, 3, 4]);
    let pages = 0;
    const { client } = await setup((asked) => {
      if (!asked.path.includes(readings)) return answer(everything, asked);
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

  test('reads a listing again that changed while it was read, and counts only the second pass', async () => {
    await store(everything);
    const changing = { document: 1, interval: 1 };
    const { client } = await setup((asked) => {
      for (const kind of ['document', 'interval'] as const)
        if (asked.path.startsWith(`/v2.2/${kind}/`) && changing[kind]-- > 0)
          return answerWith(everything, { [kind]: { [`${kind}s`]: [], currentPage: 2 } }, asked);
      return answer(everything, asked);
    });
    expect(await audit({ warehouse, service: client, concurrency: 8 })).toMatchObject({
      compared: 11,
      differences: 0,
    });
  });

  test('reads records that differ again after a wait, and does not count a change that arrives meanwhile', async () => {
    await store(everything);
    // When it is read for the first time, each listing shows a state that the warehouse does not have yet.
    const seen = new Set<string>();
    const { client } = await setup((asked) => {
      const isFirst = !seen.has(asked.path);
      seen.add(asked.path);
      return answer(isFirst ? otherwise : everything, asked);
    });
    const compared = { warehouse, service: client, concurrency: 8 };
    expect(await audit({ ...compared, settleMs: 1 })).toMatchObject({ compared: 11, differences: 0 });
    seen.clear();
    expect((await audit(compared)).differences, 'without a wait').toBeGreaterThan(0);
    const waited = { options: { settleMs: 1 } };
    expect(await auditOf(otherwise, waited)).toEqual(await auditOf(otherwise));
  });

  test('stops waiting after several waits that changed nothing', async () => {
    const nine = Array.from({ length: 9 }, (_, at) => ({ id: `m-${at}` }));
    const held: Held = { '/company': [{ id: company, sites: [] }], [meters]: nine };
    await store(held);
    for (const one of nine) held[`/interval/meter/${one.id}`] = [reading(1, '1')];
    let requests = 0;
    const { client } = await setup((asked) => {
      requests += Number(asked.path.includes('/interval/'));
      return answer(held, asked);
    });
    const resources = ['intervals'] as const;
    const report = await audit({ warehouse, service: client, concurrency: 1, resources, settleMs: 1 });
    expect(report.differences).toBe(nine.length);
    expect(requests).toBe(nine.length + attemptPolicy.settlesMax);
  });

  test('does not change a row that an event changed meanwhile if it repairs', async () => {
    await store(everything);
    let sent = false;
    const { client } = await setup(async (asked) => {
      if (!sent && asked.path.includes('/document/')) {
        sent = true;
        const event = documentEvent('updated', third, '2026-05-02T00:00:00.000001');
        await recordEvents(warehouse.db, [delivery({ ...event, company: { id: company } })]);
      }
      return answer(otherwise, asked);
    });
    // The page has an older state than the event, which arrived while the page was read.
    const only = { apiVersion: 'v2.2', resources: ['documents'] } as const;
    await repair({ warehouse, service: client, concurrency: 8, ...only });
    const { rows } = await warehouse.db.execute(
      sql`select updated::text from utility.documents where id = ${third}::uuid`,
    );
    expect(rows).toEqual([{ updated: '2026-05-02 00:00:00.000001+00' }]);
  });
});

test('an audit lists the events behind a difference', async () => {
  await store(everything);
  const event = delivery({ ...documentEvent('updated', third, updated), company: { id: company } });
  await recordEvents(warehouse.db, [event]);
  const { examples } = await auditOf(otherwise);
  expect(examples.find((one) => one.id === third)?.events).toMatchObject([
    { id: event.id, type: 'document.updated.v2', outcome: 'pending' },
  ]);
});

describe('an audit that reads several listings at once', () => {
  const companies = Array.from({ length: 6 }, (_, at) => id(`c${at}`));
  const metersOf = (of: string) => Array.from({ length: 8 }, (_, at) => ({ id: `${of}/m${at}` }));
  const resources = ['documents', 'intervals'] as const;

  /**
   * Makes companies with ten documents each that the warehouse lacks. Of each meter one reading is missing in
   * the warehouse, one is different and one is extra.
   */
  async function manyCompanies(): Promise<Held> {
    const held: Held = { '/company': companies.map((one) => ({ id: one })) };
    for (const of of companies) {
      held[listingOf('document', of)] = Array.from({ length: 10 }, () => ({ id: randomUUID(), updated }));
      held[listingOf('meter', of)] = metersOf(of);
      await writeRecords(warehouse, 'meters', metersOf(of), { companyId: of });
      for (const one of metersOf(of)) {
        held[`/interval/meter/${encodeURIComponent(one.id)}`] = [reading(1, '1'), reading(2, '2')];
        const body = JSON.stringify([reading(1, '1.5'), reading(3, '3')]);
        await writeReadings(warehouse, one.id, began(1), readIntervals(body, null));
      }
    }
    return held;
  }

  test('uses all allowed requests in flight, and reports the same as a sequential audit', async () => {
    const held = await manyCompanies();
    const sequential = await auditOf(held, { options: { resources, concurrency: 1 } });
    expect(sequential).toMatchObject({ compared: 60 + 96, differences: 60 + 48 * 3 });
    expect(sequential.examples).toHaveLength(50);

    const doors = { document: createDoor(), interval: createDoor() };
    const { client, server } = await setup(async (asked) => {
      if (asked.path.includes('/document/')) await doors.document.pass();
      if (asked.path.includes('/interval/')) await doors.interval.pass();
      return answer(held, asked);
    });
    const auditing = audit({ warehouse, service: client, concurrency: 5, resources });
    await until('five companies are being read', () => doors.document.waiting === 5);
    doors.document.open();
    await until('five meters are being read', () => doors.interval.waiting === 5);
    // A listing that waits for the service holds no connection.
    expect(warehouse.pool.idleCount).toBe(warehouse.pool.totalCount);
    doors.interval.open();
    expect(await auditing).toEqual(sequential);
    expect(server.inFlightMax).toBe(5);
  });

  test('ends all walks when the service refuses the key', async () => {
    const held = await manyCompanies();
    const door = createDoor();
    const { client, server } = await setup(async (asked) => {
      if (asked.path.includes(listingOf('document', companies[2]))) {
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
  test('and a later audit count what somebody decided to keep separately from the differences', async () => {
    await store(everything);
    const { runId } = await repairOf(otherwise);
    await repairOf(otherwise);
    const { db } = warehouse;
    const by = { actor: 'ada', role: 'operator', source: 'command', target: { run: runId } } as const;
    const revived = await recorded(
      db,
      { ...by, action: 'deletes undo' },
      () => undoDeletes(db, runId),
      () => 'done',
    );
    // One record and one reading.
    expect(revived).toMatchObject({ revived: 2 });
    const keeps = {
      differences: 0,
      kept: { rows: 2, decisions: [{ runId, state: 'undone', by: 'ada', rows: 2 }] },
      resources: { documents: { extra: 0, kept: 1 }, intervals: { extra: 0, kept: 1 } },
    };
    expect(await auditOf(otherwise)).toMatchObject(keeps);
    expect(await repairOf(otherwise)).toMatchObject(keeps);
    await db.execute(sql`
      insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, synced_at)
      values (${meter}, '2026-05-01T03:00:00Z', 900, 'kW', now())`);
    const ofAnotherUnit = { resource: 'intervals', state: 'extra', id: expect.stringContaining('/kW') };
    expect(await auditOf(otherwise)).toMatchObject({ differences: 1, examples: [ofAnotherUnit] });
  });

  test('and a later audit count the records of a company that somebody decided to keep separately', async () => {
    await store(twoCompanies);
    await warehouse.db.execute(sql`
      insert into metersync.deletes (run_id, resource, record_id, reason, state, absent_since, noted_at, decided_at)
      values (${randomUUID()}, 'companies', ${company}, 'absent', 'rejected', now(), now(), now())`);
    const now = { '/company': [{ id: other, name: 'Other', sites: [] }], ...nothingOf(other) };
    const { kept, resources } = await auditOf(now);
    expect([kept.rows, resources.documents.kept]).toEqual([9, 3]);
  });

  test.each(['connections', 'intervals'] as const)(
    'of %s makes checks of the company due again',
    async (resource) => {
      const { db } = warehouse;
      const only = { options: { resources: [resource] } };
      const checked = async () => {
        await refreshDataIssues(db, [company]);
        await db.execute(sql`delete from metersync.company_changes`);
        // As if the check had been an hour ago.
        await db.execute(sql`update metersync.data_checks set seen_until = now() - interval '1 hour'`);
      };
      const due = async () => {
        await deleteOutdatedChecks(db, []);
        const all = { runId: randomUUID(), kinds: checkKinds };
        return (await companiesToCheck(db, all)).map((one) => one.id);
      };
      await store(everything);
      await checked();
      expect((await repairOf(everything, only)).differences).toBe(0);
      expect(await due()).toEqual([]);
      const changed = [{ id: connection, status: 'ERROR', url: 'x', updated }];
      const now = { ...everything, [listingOf('connection')]: changed, [readings]: [reading(1, '1')] };
      await checked();
      expect((await repairOf(now, only)).differences).toBeGreaterThan(0);
      expect(await due()).toEqual([company]);
    },
  );

  test('tombstones the sites of a company that lists none any more', async () => {
    await store(everything);
    const now = { ...everything, '/company': [{ id: company, sites: [] }] };
    expect(await repairOf(now, onlySites)).toMatchObject({ resources: { sites: { extra: 1 } } });
    expect(await auditOf(now, onlySites)).toMatchObject({ differences: 0 });
  });

  test('tombstones nothing if the records of a listing have no ids', async () => {
    await store(everything);
    const only = { options: { resources: ['documents'] } } as const;
    const now = { ...everything, [listingOf('document')]: [{ updated }, { updated }] };
    const stored = (await auditOf(everything, only)).resources.documents;
    await repairOf(now, only);
    expect((await auditOf(everything, only)).resources.documents).toEqual(stored);
  });

  test('sees an unlisted record that gets another owner while the listing of that owner is compared', async () => {
    // The company with the least id owns a record that several companies list.
    await store(twoCompanies);
    await writeRecords(warehouse, 'documents', [billOf(document)], { companyId: other });
    const client = await warehouse.pool.connect();
    onTestFinished(() => client.release(true));
    const query = client.query.bind(client) as (...statement: unknown[]) => Promise<unknown>;
    /** After each statement, the listing of the owner was read, and the record gets its other owner. */
    const movesAfter = async (...statement: unknown[]) => {
      const done = await query(...statement);
      const owner = { resource: 'documents', companyId: company } as const;
      await forgetListed(warehouse.db, owner, { ids: documents.slice(1), beganAt: 'now' });
      return done;
    };
    const db = drizzle(Object.assign(client, { query: movesAfter }));
    expect(await unlistedRows(db, 'documents', other, [])).toMatchObject([{ id: document }]);
    expect(await rowOf(warehouse, 'documents', document)).toMatchObject({ company_id: other });
  });

  test('has the next backfill write usage that the records of documents list', async () => {
    const own = randomUUID();
    const listed = billOf(document, { usageData: [{ id: own, usage: '2.20' }] });
    const held: Held = { ...everything, [bills]: [listed, billOf(second), billOf(third)] };
    await store(held);
    const resources = { usageData: { extra: 1, missing: 1, compared: 1 } };
    expect(await auditOf(held, withoutUsage)).toMatchObject({ differences: 2, resources });
    await repairOf(held, withoutUsage);
    const read = { companyId: company, readAt: new Date().toISOString() };
    await writeRecords(warehouse, 'documents', held[bills] ?? [], read, true);
    expect(await auditOf(held, withoutUsage)).toMatchObject({ differences: 0 });
  });

  test('reads all times again after the setting of their zone was corrected', async () => {
    await store(everything);
    const corrected = { url: warehouse.url, timeZone: 'Europe/Berlin', max: 8, onError: () => {} };
    const zoned = { options: { warehouse: connectWarehouse(corrected) } };
    onTestFinished(() => zoned.options.warehouse.close());
    const { resources } = await repairOf(everything, zoned);
    expect(resources).toMatchObject({ documents: { different: 3 }, intervals: { missing: 2, extra: 2 } });
    expect(await auditOf(everything, zoned)).toMatchObject({ differences: 0 });
  });
});

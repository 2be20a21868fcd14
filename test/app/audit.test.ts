import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { audit } from '../../app/audit.ts';
import { defaultEndpoints, type EndpointCatalogue } from '../../contract/endpoints.ts';
import { writeIntervals } from '../../db/write/intervals.ts';
import { readIntervals } from '../../service/intervals.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { setup } from '../service/setup.ts';
import { writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

/** What the service holds, by the path below the version; a record may be JSON text. */
type Held = Record<string, readonly (object | string)[]>;

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
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
  warehouse = await createWarehouse();
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

/** Puts what the service holds into the warehouse, as a backfill would. */
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
  await writeIntervals(warehouse, meter, '2026-06-01T00:00:00Z', readIntervals(body, null));
}

async function auditOf(held: Held, endpoints: EndpointCatalogue = defaultEndpoints, companyId?: string) {
  const { client } = await setup((asked) => answer(held, asked), { endpoints });
  return await audit({ warehouse, service: client, companyId });
}

function answer(held: Held, asked: Asked): Reply {
  const records = held[asked.path.replace('/v2.2', '')];
  if (records === undefined) return { json: { detail: 'no such record' }, status: 404 };
  const texts = records.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
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
  test('of a warehouse that equals the service finds nothing, having compared everything', async () => {
    await store(everything());
    const report = await auditOf(everything());
    expect(report).toMatchObject({ differences: 0, examples: [], compared: 11 });
    const compared = Object.entries(report.resources).map(([name, { compared }]) => [name, compared]);
    expect(Object.fromEntries(compared)).toEqual({
      ...{ companies: 1, sites: 1, connections: 1, documents: 3, usageData: 1, meters: 1, intervals: 3 },
    });
  });

  test('names each record that the warehouse lacks, has beside the service, or has otherwise', async () => {
    const { company, meter, documents } = ids;
    await store(everything());
    const now = everything();
    const [, second, third] = documents;
    const added = randomUUID();
    now[`/document/company/${company}`] = [
      { id: second, created: updated, updated },
      { id: third, created: updated, updated, note: 'changed' },
      { id: added, created: updated, updated },
    ];
    now[`/interval/meter/${meter}`] = [reading(1, '1.5'), reading(2, '2'), reading(4, '4')];
    const report = await auditOf(now);
    const { documents: bills, intervals } = report.resources;
    expect([bills, intervals]).toEqual([
      { compared: 3, missing: 1, extra: 1, different: 1 },
      { compared: 3, missing: 1, extra: 1, different: 1 },
    ]);
    expect(report.differences).toBe(6);
    expect(report.examples.filter(({ resource }) => resource === 'documents')).toEqual(
      expect.arrayContaining([
        { resource: 'documents', id: documents[0], state: 'extra' },
        { resource: 'documents', id: third, state: 'different' },
        { resource: 'documents', id: added, state: 'missing' },
      ]),
    );
  });

  test('sees a tombstone of what lives, a column that raw belies, and a number spelled otherwise', async () => {
    await store(everything());
    const { connection, usage, documents } = ids;
    await warehouse.db.execute(sql`update utility.connections set status = 'PENDING'`);
    await warehouse.db.execute(
      sql`update utility.documents set deleted_at = now() where id = ${documents[1] ?? ''}::uuid`,
    );
    await warehouse.db.execute(sql`update utility.usage_data set raw = raw || '{"usage":"1.1"}'`);
    const report = await auditOf(everything());
    expect(report.examples).toEqual([
      { resource: 'connections', id: connection, state: 'different' },
      { resource: 'documents', id: documents[1], state: 'missing' },
      { resource: 'usageData', id: usage, state: 'different' },
    ]);
  });

  test('of one company compares that one alone', async () => {
    await store(everything());
    const other = randomUUID();
    await writeRecords(warehouse, 'documents', [{ id: randomUUID() }], { companyId: other });
    await writeRecords(warehouse, 'companies', [{ id: other }]);
    const now = { ...everything(), '/company': [...(everything()['/company'] ?? []), { id: randomUUID() }] };
    expect(await auditOf(now, defaultEndpoints, ids.company)).toMatchObject({ differences: 0, compared: 11 });
  });

  test('goes on past records that Postgres cannot hold, and counts them as missing', async () => {
    const { company, meter } = ids;
    const bad = randomUUID();
    const held = everything();
    held[`/document/company/${company}`] = [
      ...(held[`/document/company/${company}`] ?? []),
      `{"id":"${bad}","note":"a\\u0000b"}`,
    ];
    held[`/interval/meter/${meter}`] = [...(held[`/interval/meter/${meter}`] ?? []), reading(5, 'no number')];
    await store(held);
    const report = await auditOf(held);
    expect(report.examples).toEqual([
      { resource: 'documents', id: bad, state: 'missing' },
      {
        resource: 'intervals',
        id: expect.stringContaining(`${meter}@2026-05-01T05:00:00`),
        state: 'missing',
      },
    ]);
    expect(report.differences).toBe(2);
  });

  test('without a list of companies compares those that the warehouse knows', async () => {
    await store(everything());
    const report = await auditOf(everything(), { ...defaultEndpoints, companies: null });
    expect(report).toMatchObject({ differences: 0, compared: 9 });
  });
});

import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { readSettings } from '../../app/settings.ts';
import { diffVersions } from '../../operations/versions/versions.ts';
import { pageOf } from '../service/listing.ts';
import { ScriptedServer } from '../service/scripted-server.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

/** The sandbox has the differences of seed 9, which are in documents and usage data only. */
let service: TestSandbox;
beforeAll(async () => {
  service = await startSandbox({ companies: 2, documents: 12, intervalDays: 1 });
});
afterAll(() => service?.stop());

const diff = (
  from: string,
  to: string,
  more: { companyId?: string; records?: number; service?: { url: string; apiKey: string } } = {},
) =>
  diffVersions({
    settings: readSettings({ SERVICE_MAX_CONCURRENCY: '4' }),
    service: { url: service.apiUrl, apiKey: service.apiKey },
    from,
    to,
    records: 500,
    log: pino({ level: 'silent' }),
    ...more,
  });

test('seed 9.2: v2.1 has more fields of documents and usage data than v2, and no other change', async () => {
  const { resources } = await diff('v2', 'v2.1');
  const fields = Object.fromEntries(resources.map(({ resource, fields }) => [resource, fields]));
  expect(resources.map(({ resource, compared, unmatched }) => [resource, compared > 0, unmatched])).toEqual([
    ...['companies', 'connections', 'meters', 'documents', 'usageData', 'intervals'].map((name) => [
      name,
      true,
      0,
    ]),
  ]);
  for (const name of ['companies', 'connections', 'meters', 'intervals']) expect(fields[name]).toEqual([]);
  const appearing = fields.documents?.filter(({ change }) => change === 'appears').map(({ path }) => path);
  expect(appearing).toEqual(
    expect.arrayContaining(['/accountNumber', '/startDate', '/endDate', '/netCharges']),
  );
  expect(fields.usageData?.length).toBeGreaterThan(0);
});

test('seed 9.3: v2.2 changes only documents', async () => {
  const { resources } = await diff('v2.1', 'v2.2');
  expect(resources.flatMap(({ resource, fields }) => (fields.length > 0 ? [resource] : []))).toEqual([
    'documents',
  ]);
});

test('a company and a number of records bound the comparison', async () => {
  const companies = await service.read<{ id: string }[]>('/company');
  const { resources } = await diff('v2', 'v2.2', { companyId: companies[0]?.id as string, records: 5 });
  expect(resources.map(({ resource }) => resource)).toEqual([
    'connections',
    'meters',
    'documents',
    'usageData',
    'intervals',
  ]);
  expect(resources.find(({ resource }) => resource === 'documents')?.compared).toBe(5);
});

test('the error names a version that the service does not have', async () => {
  await expect(diff('v2', 'v9')).rejects.toThrow(/^the service has no version v9: /);
});

test('companies come from as many pages as needed, and readings from meters that have some', async () => {
  const companies = Array.from({ length: 10 }, (_, at) => ({ id: randomUUID(), name: `Company ${at}` }));
  const [first] = companies;
  const meters = Array.from({ length: 30 }, (_, at) => ({ id: `meter-${at}` }));
  const documents = companies.map(() => [{ id: randomUUID() }, { id: randomUUID() }]);
  const server = await ScriptedServer.start((asked) => {
    const [, version, resource, kind, id] = asked.path.split('/');
    if (resource === 'ping') return { json: {} };
    if (resource === 'company') {
      return pageOf(companies, asked, { key: 'companies', total: 'totalCompanies', perPage: 3 });
    }
    if (resource === 'meter' && id === first?.id)
      return pageOf(meters, asked, { key: 'meters', total: 'totalMeters' });
    if (resource === 'interval') {
      const usage = version === 'v2' ? 1.5 : '1.50';
      const days = ['meter-8', 'meter-20'].includes(id ?? '') ? [1, 2, 3] : [];
      const readings = days.map((day) => ({ start: `2026-01-0${day}`, end: `2026-01-0${day + 1}`, usage }));
      return pageOf(readings, asked, { key: 'intervals', total: 'totalIntervals' });
    }
    const held =
      resource === 'document' ? (documents[companies.findIndex((company) => company.id === id)] ?? []) : [];
    return { json: kind === 'company' ? held : [] };
  });
  onTestFinished(() => server.stop());
  const { resources } = await diff('v2', 'v2.2', { records: 9, service: { url: server.url, apiKey: 'key' } });
  const of = (name: string) => resources.find(({ resource }) => resource === name);
  expect(of('documents')).toMatchObject({ compared: 9, unmatched: 0, fields: [] });
  const asked = server.asked.filter(({ path }) => path.startsWith('/v2.2/document/company/'));
  expect(asked.map(({ path }) => path.split('/').at(-1))).toEqual(companies.slice(0, 5).map(({ id }) => id));
  // Nine records from five meters are two of each, and only two meters have readings.
  expect(of('intervals')).toMatchObject({
    compared: 4,
    unmatched: 0,
    fields: [{ path: '/usage', change: 'type', id: 'meter-8 2026-01-01 2026-01-02' }],
  });
});

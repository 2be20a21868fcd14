import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { diffVersions } from '../../app/versions.ts';
import { defaultEndpoints } from '../../contract/endpoints.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

/** The sandbox has the differences of seed 9: documents and usage data alone. */
let service: TestSandbox;
beforeAll(async () => {
  service = await startSandbox({ companies: 2, documents: 12, intervalDays: 0 });
});
afterAll(() => service?.stop());

const diff = (from: string, to: string, more: { companyId?: string; records?: number } = {}) =>
  diffVersions({
    settings: {
      ...{ url: service.apiUrl, apiKey: service.apiKey, companies: [], timeZone: 'UTC' },
      ...{ maxConcurrency: 4, maxPerSecond: undefined },
      endpoints: defaultEndpoints,
    } as Parameters<typeof diffVersions>[0]['settings'],
    service: { url: service.apiUrl, apiKey: service.apiKey },
    ...{ from, to, records: 500, log: pino({ level: 'silent' }), ...more },
  });

test('seed 9.2: v2.1 shows more of documents and usage data than v2, and all else as it was', async () => {
  const { resources } = await diff('v2', 'v2.1');
  const fields = Object.fromEntries(resources.map((one) => [one.resource, one.fields]));
  expect(resources.map(({ resource, compared, unmatched }) => [resource, compared > 0, unmatched])).toEqual([
    ...['companies', 'connections', 'meters', 'documents', 'usageData'].map((name) => [name, true, 0]),
  ]);
  for (const name of ['companies', 'connections', 'meters']) expect(fields[name]).toEqual([]);
  const appearing = fields.documents?.filter(({ change }) => change === 'appears').map(({ path }) => path);
  expect(appearing).toEqual(
    expect.arrayContaining(['/accountNumber', '/startDate', '/endDate', '/netCharges']),
  );
  expect(fields.usageData?.length).toBeGreaterThan(0);
});

test('seed 9.3: v2.2 changes documents alone', async () => {
  const { resources } = await diff('v2.1', 'v2.2');
  expect(resources.flatMap(({ resource, fields }) => (fields.length > 0 ? [resource] : []))).toEqual([
    'documents',
  ]);
});

test('one company and so many records, as asked for', async () => {
  const companies = await service.read<{ id: string }[]>('/company');
  const { resources } = await diff('v2', 'v2.2', { companyId: companies[0]?.id as string, records: 5 });
  expect(resources.map(({ resource }) => resource)).toEqual([
    'connections',
    'meters',
    'documents',
    'usageData',
  ]);
  expect(resources.find(({ resource }) => resource === 'documents')?.compared).toBe(5);
});

test('a version that the service does not have is named', async () => {
  await expect(diff('v2', 'v9')).rejects.toThrow(/^the service has no version v9: /);
});

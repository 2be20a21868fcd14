import { describe, expect, test } from 'vitest';
import { forFile } from '../support/for-file.ts';
import { type AnyRecord, companiesOf, envelope, recordsOf, startService } from './support/service.ts';

const service = await forFile(startService({ companies: 1, documents: 76, seed: 1 }));
const [company] = (await companiesOf(service)) as [AnyRecord];
const documents = await recordsOf(service, 'document', company.id, 'documents');
const usage = await recordsOf(service, 'usage', company.id, 'usageData');

const ids = (records: readonly AnyRecord[]) => records.map(({ id }) => id);
const found = async (resource: string, items: string, query: string) => {
  const answer = await service.api(`/${resource}/company/${company.id}?${query}`);
  expect(answer.status).toBe(200);
  const page = envelope<AnyRecord>(answer, items);
  expect(page.total).toBe(page.items.length);
  return page.items;
};
const middle = () => documents[Math.floor(documents.length / 2)] as AnyRecord;

describe('dates', () => {
  test('BILL_DATE compares the bill date, both bounds included, and is the default for documents and usage', async () => {
    const { billDate } = middle();
    const query = `startDate=${billDate}&endDate=${billDate}`;
    const expected = ids(documents.filter((one) => one.billDate === billDate));
    expect(expected.length).toBeGreaterThan(0);
    expect(ids(await found('document', 'documents', query))).toEqual(expected);
    expect(ids(await found('document', 'documents', `${query}&dateType=BILL_DATE`))).toEqual(expected);
    const rows = await found('usage', 'usageData', query);
    expect(ids(rows)).toEqual(ids(usage.filter((row) => row.document.billDate === billDate)));
  });

  test('USAGE_PERIOD matches if any day is shared', async () => {
    const endOf = ({ usageData: [row] }: AnyRecord): string => row.endDate;
    const { startDate } = middle();
    const endDate = endOf(middle());
    const query = `dateType=USAGE_PERIOD&startDate=${endDate}&endDate=${endDate}`;
    const expected = documents.filter((one) => one.startDate <= endDate && endOf(one) >= endDate);
    expect(ids(await found('document', 'documents', query))).toEqual(ids(expected));
    const early = await found('usage', 'usageData', `dateType=USAGE_PERIOD&endDate=${startDate}`);
    expect(ids(early)).toEqual(ids(usage.filter((row) => row.startDate <= startDate)));
  });

  test('CREATED_DATE and UPDATED_DATE compare with 00:00 UTC of the day', async () => {
    for (const [dateType, field] of [
      ['CREATED_DATE', 'created'],
      ['UPDATED_DATE', 'updated'],
    ] as const) {
      const day = middle()[field].slice(0, 10);
      const from = await found('document', 'documents', `dateType=${dateType}&startDate=${day}`);
      expect(ids(from)).toEqual(ids(documents.filter((one) => one[field] >= `${day}T00:00:00.000000`)));
      const to = await found('document', 'documents', `dateType=${dateType}&endDate=${day}`);
      expect(ids(to)).toEqual(ids(documents.filter((one) => one[field] <= `${day}T00:00:00.000000`)));
      expect(from.length + to.length).toBe(documents.length);
    }
  });

  test('the usage of a document is filtered by its period by default', async () => {
    const { id, usageData, billDate } = middle();
    const path = `/usage/document/${id}`;
    const inPeriod = envelope(await service.api(`${path}?endDate=${usageData[0].startDate}`), 'usageData');
    expect(inPeriod.total).toBe(usageData.length);
    const byBill = await service.api(`${path}?dateType=BILL_DATE&startDate=${billDate}&endDate=${billDate}`);
    expect(envelope(byBill, 'usageData').total).toBe(usageData.length);
  });

  test.each([
    ['startDate=yesterday'],
    ['startDate=2026-02-31'],
    ['dateType=OTHER'],
    ['isDeleted=maybe'],
    ['identifier=%00'],
  ])('refuses %s with 400', async (query) => {
    expect((await service.api(`/document/company/${company.id}?${query}`)).status).toBe(400);
  });
});

describe('filters of meters', () => {
  test('datasourceType can be repeated, and filters documents, usage and meters', async () => {
    const meters = await recordsOf(service, 'meter', company.id, 'meters');
    const types = [...new Set(meters.map((meter) => meter.datasourceType))];
    expect(types.length).toBeGreaterThan(1);
    const [type] = types;
    const one = await found('usage', 'usageData', `datasourceType=${type}`);
    expect(ids(one)).toEqual(ids(usage.filter((row) => row.datasourceType === type)));
    const all = await found('usage', 'usageData', types.map((each) => `datasourceType=${each}`).join('&'));
    expect(all).toHaveLength(usage.length);
    const bills = await found('document', 'documents', `datasourceType=${type}`);
    const has = (document: AnyRecord) =>
      document.usageData.some((row: AnyRecord) => row.datasourceType === type);
    expect(ids(bills)).toEqual(ids(documents.filter(has)));
    expect(ids(await found('meter', 'meters', `datasourceType=${type}`))).toEqual(
      ids(meters.filter((meter) => meter.datasourceType === type)),
    );
    expect((await service.api(`/usage/company/${company.id}?datasourceType=COAL`)).status).toBe(400);
  });

  test('identifier is compared without separators, leading zeros and upper or lower case', async () => {
    const [meter] = await recordsOf(service, 'meter', company.id, 'meters');
    const value = meter.identifiers[0].value as string;
    const written = encodeURIComponent(`00-${value.slice(0, 3)} ${value.slice(3)}`);
    expect(ids(await found('meter', 'meters', `identifier=${written}`))).toEqual([meter.id]);
    const rows = await found('usage', 'usageData', `identifier=${written}`);
    expect(ids(rows)).toEqual(ids(usage.filter((row) => row.meter === meter.id)));
  });
});

describe('deleted documents', () => {
  test('are listed only with isDeleted=true, together with the others', async () => {
    const { id } = middle();
    await service.change({ type: 'deleteDocument', documentId: id });
    expect(ids(await found('document', 'documents', ''))).not.toContain(id);
    const all = await found('document', 'documents', 'isDeleted=true');
    expect(all).toHaveLength(documents.length);
    expect(all.find((one) => one.id === id)).toMatchObject({ usageData: [] });
    expect((await service.api(`/document/${id}`)).status).toBe(404);
    expect((await service.api(`/document/${id}?isDeleted=true`)).status).toBe(200);
    expect((await service.api(`/usage/document/${id}`)).status).toBe(404);
    expect((await found('usage', 'usageData', '')).some((row) => row.document.id === id)).toBe(false);
  });
});

describe('connections', () => {
  test('can be filtered by status, owner and sites', async () => {
    const all = await recordsOf(service, 'connection', company.id, 'connections');
    await service.change({
      type: 'updateConnection',
      connectionId: all[0].id,
      workflowOwnerEmail: 'a@b.example',
    });
    await service.change({ type: 'createConnection', companyId: company.id, siteIds: [company.sites[1].id] });
    const after = await recordsOf(service, 'connection', company.id, 'connections');
    const pending = await found('connection', 'connections', 'status=PENDING');
    expect(ids(pending)).toEqual(ids(after.filter((one) => one.status === 'PENDING')));
    expect(ids(await found('connection', 'connections', 'connectionOwnerEmail=a@b.example'))).toEqual([
      all[0].id,
    ]);
    const serves = (one: AnyRecord) =>
      one.sitesRelations.some((relation: AnyRecord) => relation.site.id === company.sites[1].id);
    const bySite = await found('connection', 'connections', `sites=${company.sites[1].id}`);
    expect(ids(bySite)).toEqual(ids(after.filter(serves)));
  });
});

describe('intervals', () => {
  test('are the readings in [startDate, endDate), given as dates or as times with or without zones', async () => {
    const [meter] = await recordsOf(service, 'meter', company.id, 'meters');
    const read = async (query: string) =>
      envelope<AnyRecord>(await service.api(`/interval/meter/${meter.id}?${query}`), 'intervals').items;
    const all = await read('');
    const [, second, third, fourth] = all as [AnyRecord, AnyRecord, AnyRecord, AnyRecord];
    expect(await read(`startDate=${second.start}&endDate=${third.end}`)).toEqual([second, third]);
    expect(await read(`startDate=${second.start}Z&endDate=${third.end}Z`)).toEqual([second, third]);
    const shifted = (time: string) =>
      encodeURIComponent(
        `${new Date(Date.parse(`${time.slice(0, 19)}Z`) + 7_200_000).toISOString().slice(0, 19)}+02:00`,
      );
    expect(await read(`startDate=${shifted(second.start)}&endDate=${shifted(third.end)}`)).toEqual([
      second,
      third,
    ]);
    const cut = `${fourth.start.slice(0, 19)}.000001`;
    expect(await read(`startDate=${cut}`)).toEqual(all.slice(4));
    const day = second.start.slice(0, 10);
    const next = new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);
    expect(await read(`startDate=${day}&endDate=${next}`)).toEqual(
      all.filter((one) => one.end <= `${next}T00:00:00.000000`),
    );
    for (const none of ['monday', '2026-02-31', '0000-01-01', '0001-01-01T00:00:00%2B01:00'])
      expect([none, (await service.api(`/interval/meter/${meter.id}?startDate=${none}`)).status]).toEqual([
        none,
        400,
      ]);
  });

  test('of a connection are the readings of all its meters', async () => {
    const [connection] = await recordsOf(service, 'connection', company.id, 'connections');
    const meters = connection.accounts.flatMap((account: AnyRecord) => account.meters) as string[];
    const total = async (path: string) => envelope(await service.api(path), 'intervals').total;
    const each = await Promise.all(meters.map((id) => total(`/interval/meter/${id}`)));
    expect(await total(`/interval/connection/${connection.id}`)).toBe(each.reduce((sum, n) => sum + n, 0));
  });
});

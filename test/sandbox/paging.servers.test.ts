import { describe, expect, test } from 'vitest';
import { forFile } from '../support/for-file.ts';
import { type AnyRecord, companiesOf, envelope, recordsOf, startService } from './support/service.ts';

let companyId: string;

const service = await forFile(startService({ companies: 1, documents: 230, intervalDays: 2 }));
[{ id: companyId }] = (await companiesOf(service)) as [AnyRecord];

const page = async (path: string, itemsKey: string) => envelope(await service.api(path), itemsKey);

describe('the envelope of lists', () => {
  test('service.md 1.5, 2.7, 4 row 5: a page has total, perPage, totalPages, currentPage, hasNext and hasPrevious', async () => {
    const first = await service.api<Record<string, unknown>>(`/document/company/${companyId}`);
    const { documents, ...rest } = first.body;
    expect(rest).toEqual({
      totalDocuments: 230,
      perPage: 100,
      totalPages: 3,
      currentPage: 1,
      hasNext: true,
      hasPrevious: false,
    });
    expect(documents).toHaveLength(100);
  });

  test('service.md 8 row 3: pages start at 1, which is the default', async () => {
    const [without, one] = await Promise.all([
      service.api(`/document/company/${companyId}`),
      service.api(`/document/company/${companyId}?page=1`),
    ]);
    expect(without.text).toBe(one.text);
    expect((await service.api(`/document/company/${companyId}?page=0`)).status).toBe(400);
  });

  test('service.md 2.7: pages contain every record once', async () => {
    const pages = await Promise.all(
      [1, 2, 3].map((n) => page(`/document/company/${companyId}?page=${n}`, 'documents')),
    );
    expect(pages.map(({ items }) => items.length)).toEqual([100, 100, 30]);
    expect(pages.map(({ hasNext }) => hasNext)).toEqual([true, true, false]);
    expect(pages.map(({ hasPrevious }) => hasPrevious)).toEqual([false, true, true]);
    expect(new Set(pages.flatMap(({ items }) => items.map(({ id }) => id))).size).toBe(230);
  });

  test('service.md 7 row 1: a page beyond the last returns the last page, with its number', async () => {
    const last = await service.api(`/document/company/${companyId}?page=3`);
    for (const number of ['99999', '1000000000', '9'.repeat(400)]) {
      const beyond = await service.api(`/document/company/${companyId}?page=${number}`);
      expect(beyond.status).toBe(200);
      expect(beyond.text).toBe(last.text);
      expect(envelope(beyond, 'documents').currentPage).toBe(3);
    }
  });

  test('service.md 8 row 1: the page size of other lists is 100, whatever the limit', async () => {
    const { perPage, items } = await page(`/document/company/${companyId}?limit=7`, 'documents');
    expect(perPage).toBe(100);
    expect(items).toHaveLength(100);
  });

  test('service.md 8 row 2, 4 row 6: the list of connections accepts a limit from 1 to 500', async () => {
    const all = await recordsOf(service, 'connection', companyId, 'connections');
    const two = await page(`/connection/company/${companyId}?limit=2&page=2`, 'connections');
    expect(two).toMatchObject({ perPage: 2, currentPage: 2, totalPages: Math.ceil(all.length / 2) });
    expect(two.items.map(({ id }) => id)).toEqual(all.slice(2, 4).map(({ id }) => id));
    for (const limit of ['0', '501', '-1', 'x', '1.5']) {
      expect((await service.api(`/connection/company/${companyId}?limit=${limit}`)).status).toBe(400);
    }
    expect((await page(`/connection/company/${companyId}?limit=500`, 'connections')).perPage).toBe(500);
  });

  test.each([['abc'], ['-1'], ['0'], ['1.5']])('refuses page %s with 400', async (asked) => {
    const { status, body } = await service.api<{ detail: string }>(
      `/document/company/${companyId}?page=${asked}`,
    );
    expect(status).toBe(400);
    expect(body.detail).toContain('page');
  });
});

describe('lists at their edges', () => {
  test('an empty list has one empty page, which answers any page number', async () => {
    const { changes } = await service.change({ type: 'createCompany' });
    for (const resource of [
      ['document', 'documents'],
      ['usage', 'usageData'],
      ['meter', 'meters'],
      ['connection', 'connections'],
    ] as const) {
      const empty = await page(`/${resource[0]}/company/${changes[0]?.id}?page=4`, resource[1]);
      expect(empty).toMatchObject({
        total: 0,
        totalPages: 1,
        currentPage: 1,
        hasNext: false,
        hasPrevious: false,
      });
      expect(empty.items).toEqual([]);
    }
  });

  test('a page that was read before shows a change at once', async () => {
    const [connection] = await recordsOf(service, 'connection', companyId, 'connections');
    await service.change({ type: 'updateConnection', connectionId: connection.id, externalId: 'another' });
    const [after] = await recordsOf(service, 'connection', companyId, 'connections');
    expect(after.externalId).toBe('another');
    expect(after.updated > connection.updated).toBe(true);
  });
});

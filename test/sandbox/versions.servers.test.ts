import { describe, expect, test } from 'vitest';
import { forFile } from '../support/for-file.ts';
import { type AnyRecord, companiesOf, recordsOf, startService } from './support/service.ts';

const versions = ['v2', 'v2.1', 'v2.2'] as const;

const service = await forFile(startService({ companies: 1, documents: 12 }));
const [company] = (await companiesOf(service)) as [AnyRecord];

const inAll = (path: string) =>
  Promise.all(versions.map((version) => service.api<AnyRecord>(path, { version })));

describe('versions next to one another', () => {
  test('service.md 9.1: all versions share key, paths and pagination', async () => {
    for (const [resource, items] of [
      ['document', 'documents'],
      ['usage', 'usageData'],
      ['connection', 'connections'],
      ['meter', 'meters'],
    ] as const) {
      const answers = await inAll(`/${resource}/company/${company.id}`);
      const heads = answers.map((answer) => {
        const { [items]: list, ...head } = answer.body;
        return { head, ids: list.map((one: AnyRecord) => one.id) };
      });
      expect(heads[1]).toEqual(heads[0]);
      expect(heads[2]).toEqual(heads[0]);
    }
  });

  test('service.md 9.2, 9.3: companies, sites, connections, meters, intervals and webhooks are equal byte for byte', async () => {
    const [meter] = await recordsOf(service, 'meter', company.id, 'meters');
    const [connection] = await recordsOf(service, 'connection', company.id, 'connections');
    const paths = [
      '/company',
      `/company/${company.id}`,
      `/site/company/${company.id}`,
      `/site/${company.sites[0].id}`,
      `/connection/company/${company.id}`,
      `/connection/${connection.id}`,
      `/connection/${connection.id}/details`,
      `/meter/company/${company.id}`,
      `/meter/site/${meter.site}`,
      `/meter/${meter.id}`,
      `/interval/meter/${meter.id}`,
      `/interval/connection/${connection.id}`,
      '/external/configure_webhook',
    ];
    for (const path of paths) {
      const [v2, v21, v22] = await inAll(path);
      expect(v2?.status).toBe(200);
      expect(v21?.text).toBe(v2?.text);
      expect(v22?.text).toBe(v2?.text);
    }
  });

  test('service.md 9.2: v2.1 changes documents and usage data, with more metadata', async () => {
    for (const [resource, items] of [
      ['document', 'documents'],
      ['usage', 'usageData'],
    ] as const) {
      const [v2, v21] = (await inAll(`/${resource}/company/${company.id}`)).map((one) => one.body[items][0]);
      expect(v21).not.toEqual(v2);
      expect(Object.keys(v21).length).toBeGreaterThan(Object.keys(v2).length);
    }
  });

  test('service.md 9.3: v2.2 changes documents again; its usage data equals v2.1 byte for byte', async () => {
    const [, v21, v22] = await inAll(`/document/company/${company.id}`);
    expect(v22?.body.documents[0]).toHaveProperty('demandMeters');
    expect(v21?.body.documents[0]).not.toHaveProperty('demandMeters');
    for (const { usageData } of v22?.body.documents ?? []) {
      for (const row of usageData) {
        expect(row).toHaveProperty('timeOfUseBreakdown');
        expect(row).not.toHaveProperty('timeOfUse');
      }
    }
    const documentId = v22?.body.documents[0].id;
    const usageId = v22?.body.documents[0].usageData[0].id;
    for (const path of [
      `/usage/company/${company.id}`,
      `/usage/document/${documentId}`,
      `/usage/${usageId}`,
    ]) {
      const [, usage21, usage22] = await inAll(path);
      expect(usage22?.text).toBe(usage21?.text);
    }
  });

  test.each(versions)(
    'service.md 9.5, 4 row 4, 9 row 1, 9 row 2, 9 row 3: ping under %s returns this version',
    async (version) => {
      expect((await service.api('/ping', { version })).body).toMatchObject({ version });
    },
  );

  test('service.md 9.6, 1.6: a write in one version is visible in all', async () => {
    for (const [index, version] of versions.entries()) {
      const enabled = index % 2 === 0;
      await service.api('/external/configure_webhook', { version, method: 'PATCH', body: { enabled } });
      for (const read of await inAll('/external/configure_webhook')) expect(read.body).toEqual({ enabled });
    }
    const [meter] = await recordsOf(service, 'meter', company.id, 'meters');
    const { changes } = await service.change({ type: 'createDocument', meterId: meter.id });
    for (const read of await inAll(`/document/${changes[0]?.id}`)) expect(read.body.id).toBe(changes[0]?.id);
  });

  test('service.md 1.6: exactly three versions exist', async () => {
    expect((await service.api('/ping', { version: 'v2.3' })).status).toBe(404);
    expect((await service.api('/ping', { version: 'v1' })).status).toBe(404);
    expect((await service.api('/ping', { version: 'v2.0' })).status).toBe(404);
  });
});

import { describe, expect, test } from 'vitest';
import { forFile } from '../support/for-file.ts';
import { type AnyRecord, companiesOf, envelope, recordsOf, startService } from './support/service.ts';

const versions = ['v2', 'v2.1', 'v2.2'] as const;

const service = await forFile(startService({ companies: 1, documents: 24 }));
const [company] = (await companiesOf(service)) as [AnyRecord];
const list = (resource: string, items: string) => recordsOf(service, resource, company.id, items);
const [[connection], [meter], [document], [usage]] = await Promise.all([
  list('connection', 'connections'),
  list('meter', 'meters'),
  list('document', 'documents'),
  list('usage', 'usageData'),
]);
const inAll = (path: string) =>
  Promise.all(versions.map((version) => service.api<AnyRecord>(path, { version })));

const kinds = [
  ['uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/],
  ['timestamp', /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$/],
  ['date', /^\d{4}-\d{2}-\d{2}$/],
  ['decimal', /^-?\d+\.\d{2,3}$/],
] as const;

/** Notes the kind of each value in a record by its path. */
function noteKinds(value: unknown, path: string, kindsOf: Map<string, Set<string>>): void {
  const note = (kind: string) => kindsOf.set(path, (kindsOf.get(path) ?? new Set()).add(kind));
  if (Array.isArray(value)) {
    note('list');
    for (const one of value) noteKinds(one, `${path}[]`, kindsOf);
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, inside] of Object.entries(value)) noteKinds(inside, `${path}.${name}`, kindsOf);
  } else if (typeof value === 'string') note(kinds.find(([, form]) => form.test(value))?.[0] ?? 'text');
  else note(value === null ? 'null' : typeof value);
}

test('service.md 2.2, 2.4, 2.5, 9.2, 9.3: the fields of records in each version are as in the golden file', async () => {
  const byVersion = await Promise.all(
    versions.map(async (version) => {
      const kindsOf = new Map<string, Set<string>>();
      for (const [name, path, items] of [
        ['company', `/company/${company.id}`],
        ['connection', `/connection/company/${company.id}`, 'connections'],
        ['meter', `/meter/company/${company.id}`, 'meters'],
        ['document', `/document/company/${company.id}`, 'documents'],
        ['usage', `/usage/company/${company.id}`, 'usageData'],
        ['interval', `/interval/meter/${meter.id}`, 'intervals'],
      ] as const) {
        const answer = await service.api(path, { version });
        for (const record of items === undefined ? [answer.body] : envelope(answer, items).items)
          noteKinds(record, name, kindsOf);
      }
      return kindsOf;
    }),
  );
  const objects = new Map<string, string[]>();
  for (const path of new Set(byVersion.flatMap((kindsOf) => [...kindsOf.keys()]))) {
    const [, object = '', field] = /^(.*)\.([^.]+)$/.exec(path) ?? [];
    const in3 = byVersion.map((kindsOf) => [...(kindsOf.get(path) ?? [])].sort().join(' or '));
    const where = versions.filter((_, at) => in3[at] !== '').join(', ');
    const kind = [...new Set(in3.filter((one) => one !== ''))].join(' / ');
    const told = `${field} ${kind}${in3.includes('') ? ` (${where})` : ''}`;
    objects.set(object, [...(objects.get(object) ?? []), told]);
  }
  const lines = [...objects].sort().map(([object, fields]) => `${object}: ${fields.sort().join(', ')}`);
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('golden/fields.txt');
});

test('a record is the same by its id and in each list', async () => {
  for (const [path, record, lists] of [
    [`/company/${company.id}`, company, []],
    [`/site/${company.sites[0].id}`, company.sites[0], [`/site/company/${company.id} sites`]],
    [`/connection/${connection.id}`, connection, []],
    [`/connection/${connection.id}/details`, connection, []],
    [`/document/${document.id}`, document, [`/document/site/${document.site.id} documents`]],
    [`/meter/${meter.id}`, meter, [`/meter/site/${meter.site} meters`]],
    [
      `/usage/${usage.id}`,
      usage,
      [`/usage/document/${usage.document.id} usageData`, `/usage/meter/${usage.meter} usageData`],
    ],
  ] as const) {
    expect((await service.api(path)).body, path).toEqual(record);
    for (const list of lists) {
      const [at = '', items = ''] = list.split(' ');
      expect(envelope(await service.api(at), items).items, list).toContainEqual(record);
    }
  }
});

describe('versions next to one another', () => {
  test('service.md 9.1: share key, paths and pagination', async () => {
    for (const [resource, items] of [
      ['document', 'documents'],
      ['usage', 'usageData'],
    ] as const) {
      const [v2, v21, v22] = (await inAll(`/${resource}/company/${company.id}`)).map(({ body }) => ({
        ...body,
        [items]: body[items].map((one: AnyRecord) => one.id),
      }));
      expect([v21, v22]).toEqual([v2, v2]);
    }
  });

  test('service.md 9.2, 9.3: have the same companies, sites, connections, meters and readings, byte for byte', async () => {
    for (const path of [
      '/company',
      `/site/company/${company.id}`,
      `/connection/company/${company.id}`,
      `/meter/company/${company.id}`,
      `/interval/meter/${meter.id}`,
    ]) {
      const [v2, v21, v22] = (await inAll(path)).map(({ text }) => text);
      expect([v21, v22], path).toEqual([v2, v2]);
    }
    const [, v21, v22] = (await inAll(`/usage/company/${company.id}`)).map(({ text }) => text);
    expect(v22).toBe(v21);
  });

  test('service.md 9.5, 9.6, 1.6: answer ping with their name, and show what was written in another version', async () => {
    for (const version of versions)
      expect((await service.api('/ping', { version })).body).toEqual({ version });
    for (const version of ['v1', 'v2.0', 'v2.3'])
      expect((await service.api('/ping', { version })).status).toBe(404);
    for (const version of versions) {
      const enabled = version !== 'v2.1';
      await service.api('/external/configure_webhook', { version, method: 'PATCH', body: { enabled } });
      for (const read of await inAll('/external/configure_webhook')) expect(read.body).toEqual({ enabled });
    }
  });
});

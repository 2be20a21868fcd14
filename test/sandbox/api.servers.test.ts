import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { forFile } from '../support/for-file.ts';
import { type AnyRecord, companiesOf, envelope, startService } from './support/service.ts';

const versions = ['v2', 'v2.1', 'v2.2'];

const service = await forFile(startService({ companies: 4, organizations: 2 }));
const [company] = (await companiesOf(service)) as [AnyRecord];
const [, foreign] = service.sandbox.organizations as [unknown, { id: string; apiKey: string }];

describe('authentication', () => {
  test.each(versions)('service.md 5.1: %s requires X-API-Key and accepts no other', async (version) => {
    for (const path of [
      '/ping',
      '/company',
      `/document/company/${company.id}`,
      '/external/configure_webhook',
    ]) {
      for (const key of [null, '', 'wrong']) {
        const { status, body } = await service.api<{ detail: string }>(path, { version, key });
        expect(status).toBe(401);
        expect(body.detail).toMatch(/API.?key|X-API-Key/i);
      }
      expect((await service.api(path, { version })).status).toBe(200);
    }
  });

  test('one organization sees nothing of another organization', async () => {
    const theirs = (await service.api<AnyRecord[]>('/company', { key: foreign.apiKey })).body;
    const own = await companiesOf(service);
    expect(own).toHaveLength(2);
    expect(theirs).toHaveLength(2);
    const [other] = theirs;
    const key = foreign.apiKey;
    const ids = {
      connection: envelope(await service.api(`/connection/company/${other.id}`, { key }), 'connections')
        .items[0]?.id,
      document: envelope(await service.api(`/document/company/${other.id}`, { key }), 'documents').items[0]
        ?.id,
      usage: envelope(await service.api(`/usage/company/${other.id}`, { key }), 'usageData').items[0]?.id,
      meter: envelope(await service.api(`/meter/company/${other.id}`, { key }), 'meters').items[0]?.id,
      site: other.sites[0].id,
    };
    const paths = [
      `/company/${other.id}`,
      ...Object.entries(ids).map(([resource, id]) => `/${resource}/${id}`),
      ...['site', 'connection', 'meter', 'document', 'usage'].map((one) => `/${one}/company/${other.id}`),
      `/interval/meter/${ids.meter}`,
      `/interval/connection/${ids.connection}`,
      `/usage/document/${ids.document}`,
    ];
    for (const path of paths) {
      expect([path, (await service.api(path, { key })).status]).toEqual([path, 200]);
      expect([path, (await service.api(path)).status]).toEqual([path, 404]);
    }
  });
});

describe('errors', () => {
  test('a malformed id is answered with 400, and an unknown id or path with 404, each with a JSON body that says so', async () => {
    const cases = [
      ['/document/company/not-a-uuid', 400],
      [`/document/company/${randomUUID()}`, 404],
      [`/document/${randomUUID()}`, 404],
      [`/connection/${randomUUID()}/details`, 404],
      ['/nothing/here', 404],
      ['/connection/%00', 400],
      [`/connection/company/${randomUUID()}?status=%00`, 400],
      [`/connection/company/${randomUUID()}?sites=a&sites=%00`, 400],
      ['/connection/%zz', 400],
      [`/connection/${'a'.repeat(101)}`, 414],
    ] as const;
    for (const [path, expected] of cases) {
      const { status, body } = await service.api<{ detail: string }>(path);
      expect([path, status]).toEqual([path, expected]);
      expect(body.detail).toBeTypeOf('string');
    }
    expect(await (await fetch(service.sandbox.url)).text()).toContain('/v2.2');
  });

  test('a NUL in a JSON body or a form of the portal is answered with 400, and a backslash before u0000 is not a NUL', async () => {
    const add = (name: string) => service.control('POST', '/sandbox/organizations', { name });
    await expect(add('a\0b')).rejects.toThrow('400 {"detail":"Values must not contain NUL characters."}');
    expect(await add('a\\u0000b')).toMatchObject({ name: 'a\\u0000b' });
    await service.enableWebhooks();
    const path = '/external/configure_webhook';
    const door = await fetch((await service.api<{ url: string }>(path, { method: 'POST' })).body.url);
    const [cookie = '', at = ''] = (door.headers.get('set-cookie') ?? '').split('; Path=');
    const refused = await fetch(`${service.sandbox.url}${at.split(';')[0]}/endpoints`, {
      method: 'POST',
      headers: { cookie, 'sec-fetch-site': 'same-origin' },
      body: new URLSearchParams({ url: 'http://127.0.0.1:9/\0' }),
    });
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining('Fields must not contain NUL'),
    ]);
    expect(service.errors).toEqual([]);
  });
});

describe('webhook configuration', () => {
  const path = '/external/configure_webhook';
  const patch = (body: unknown) => service.api(path, { method: 'PATCH', body });

  test('service.md 2.1 row 1, 4 row 1, 4 row 2: is off for a new organization, and PATCH turns it on and off', async () => {
    const added = await service.control<{ apiKey: string }>('POST', '/sandbox/organizations', {});
    expect((await service.api(path, { key: added.apiKey })).body).toEqual({ enabled: false });
    for (const enabled of [true, true, false]) {
      expect(await patch({ enabled })).toMatchObject({ status: 200, body: { enabled } });
      expect((await service.api(path)).body).toEqual({ enabled });
    }
    for (const body of [{}, { enabled: 'true' }, { enabled: 1 }, { enabled: true, more: 1 }, [], null, 'x'])
      expect((await patch(body)).status, JSON.stringify(body)).toBe(400);
    expect((await service.api(path)).body).toEqual({ enabled: false });
  });

  test('service.md 4 row 3, 3.1 row 1, 7 row 4: POST returns a portal link if webhooks are enabled and is refused otherwise', async () => {
    const refused = await service.api<{ detail: string }>(path, { method: 'POST' });
    expect(refused.status).toBe(403);
    expect(refused.body.detail).toContain('disabled');
    await service.enableWebhooks();
    const { status, body } = await service.api<{ url: string }>(path, { method: 'POST' });
    expect(status).toBe(200);
    expect((await fetch(body.url)).status).toBe(200);
    expect((await fetch(`${service.sandbox.url}/portal/${randomUUID()}`)).status).toBe(403);
  });

  test('accepts a POST that declares JSON and has no body', async () => {
    await service.enableWebhooks();
    const headers = { 'X-API-Key': service.sandbox.apiKey, 'content-type': 'application/json' };
    const url = service.sandbox.apiUrl + path;
    expect((await fetch(url, { method: 'POST', headers })).status).toBe(200);
    expect((await fetch(url, { method: 'PATCH', headers, body: '{"enabled": tru' })).status).toBe(400);
  });
});

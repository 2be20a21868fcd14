import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { forFile } from '../support/for-file.ts';
import { type AnyRecord, companiesOf, envelope, recordsOf, startService } from './support/service.ts';

const versions = ['v2', 'v2.1', 'v2.2'];
const timestamp = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const decimal = /^-?\d+\.\d{2,3}$/;

let foreign: { id: string; apiKey: string };

const service = await forFile(startService({ companies: 4, organizations: 2 }));
const [company] = (await companiesOf(service)) as [AnyRecord];
[, foreign] = service.sandbox.organizations as [unknown, typeof foreign];

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

  test('an organization that is added later has its own unique key, and nothing in it', async () => {
    const add = (asked: object) =>
      service.control<{ apiKey: string }>('POST', '/sandbox/organizations', asked);
    const added = await add({ name: 'Third' });
    await expect(add({ apiKey: added.apiKey })).rejects.toThrow('409');
    const { status, body } = await service.api<AnyRecord[]>('/company', { key: added.apiKey });
    expect([status, body]).toEqual([200, []]);
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
  test('service.md 2.1 row 1, 4 row 1: webhooks are off for a new organization', async () => {
    const added = await service.control<{ apiKey: string }>('POST', '/sandbox/organizations', {});
    const { body } = await service.api('/external/configure_webhook', { key: added.apiKey });
    expect(body).toEqual({ enabled: false });
  });

  test.each(versions)(
    'service.md 4 row 1, 4 row 2, 3.1 row 1, 3.1 row 2: under %s GET reads, and PATCH turns on and off and returns the new state',
    async (version) => {
      const path = '/external/configure_webhook';
      for (const enabled of [true, true, false]) {
        const patched = await service.api(path, { version, method: 'PATCH', body: { enabled } });
        expect([patched.status, patched.body]).toEqual([200, { enabled }]);
        for (const other of versions)
          expect((await service.api(path, { version: other })).body).toEqual({ enabled });
      }
    },
  );

  test('service.md 4 row 2: PATCH accepts only {enabled: boolean}', async () => {
    for (const body of [{}, { enabled: 'true' }, { enabled: 1 }, { enabled: true, more: 1 }, [], null, 'x']) {
      const answer = await service.api('/external/configure_webhook', { method: 'PATCH', body });
      expect([body, answer.status]).toEqual([body, 400]);
    }
    expect((await service.api('/external/configure_webhook')).body).toEqual({ enabled: false });
  });

  test('service.md 4 row 3, 3.1 row 1, 7 row 4: POST returns a portal link if webhooks are enabled and is refused otherwise', async () => {
    const path = '/external/configure_webhook';
    const refused = await service.api<{ detail: string }>(path, { method: 'POST' });
    expect(refused.status).toBe(403);
    expect(refused.body.detail).toContain('disabled');
    await service.enableWebhooks();
    const { status, body } = await service.api<{ url: string }>(path, { method: 'POST' });
    expect(status).toBe(200);
    expect((await fetch(body.url)).status).toBe(200);
  });

  test('POST may declare JSON and have no body', async () => {
    await service.enableWebhooks();
    const headers = { 'X-API-Key': service.sandbox.apiKey, 'content-type': 'application/json' };
    const url = `${service.sandbox.apiUrl}/external/configure_webhook`;
    expect((await fetch(url, { method: 'POST', headers })).status).toBe(200);
    expect((await fetch(url, { method: 'PATCH', headers, body: '{"enabled": tru' })).status).toBe(400);
    expect((await fetch(url, { method: 'PATCH', headers })).status).toBe(400);
  });

  test('an invented link opens nothing', async () => {
    expect((await fetch(`${service.sandbox.url}/portal/${randomUUID()}`)).status).toBe(403);
  });
});

/** Every field that is known of a record, by docs/reference/service.md and by the service's public documentation. */
const siteObject = 'id name';
const companyObject = 'externalId id name publicId';
const identifiers = 'rawName value name';
const typing =
  'timeOfUse netMeteringType waterType meterHighLow gasType fuelType districtType districtMediumType ' +
  'wasteDescription wasteType wasteStream refrigerantType';
const header =
  'id created updated company site auditTrailUrl url startDate billDate chargesUnits utilityCompany status flaggedStatus ' +
  'revisedDocumentId fileName email jobId notes dueDate totalCharges sourceType isFlagged invoiceId ' +
  'previousCloseBalance afterPreviousTotalPayment afterPreviousCharges afterPreviousCredits currentOpenBalance ' +
  'currentCharges credits taxCharges interestCharges';
const knownFields: Readonly<Record<string, string>> = {
  company: `${companyObject} sites users dataCollectionStartDate isDemandEnabled isImpliedMeteringEnabled impliedMeteringFraction isBasicIdentifierMappingEnabled isLowAccuracyModeEnabled`,
  'company.sites': 'id name dataCollectionStopDate externalId address path occupancyPercent',
  connection:
    'id created updated company datasource url status statusLastUpdateTime statusFirstSeenTime statusErrorDetail accounts ' +
    'country initialSites initialDatasourceTypes username workflowOwnerEmail dataCollectionStartDate multiplyByOccupancy ' +
    'externalId isActive sitesRelations',
  'connection.company': companyObject,
  'connection.datasource': 'name url',
  'connection.sitesRelations': 'accountIds datasourceTypes site',
  'connection.sitesRelations.site': siteObject,
  'connection.accounts':
    'id meters accountNumber isTracked trackingStatus isDuplicated dataCollectionStartDate isCollectingInvoiceData ' +
    'isCollectingSmartMeterData datasourceTypes lastServiceDate status statusLastUpdateTime statusFirstSeenTime statusErrorDetail',
  meter: `id site account address identifiers datasourceType isTracked ${typing}`,
  'meter.identifiers': identifiers,
  document: `${header} usageData lineItems demandMeters`,
  'document.company': companyObject,
  'document.site': siteObject,
  'document.lineItems':
    'rate totalCharge description quantity quantityUnits multipliers accountIds chargeType electricityChargeType ' +
    'electricityIsDemand electricityTimeOfUse gasChargeType billingPeriod',
  'document.demandMeters':
    'startDate endDate isEstimated demandUsage demandUsageUnits description demandType usageDataIds',
  usage:
    `id created updated startDate endDate usage usageUnits meter meterAddress meterIsTracked site identifiers datasourceType ${typing} ` +
    'additionalFields document isEstimated isImplied currentReading previousReading multiplier multiplierDescription multiplier2 ' +
    'multiplier2Description fractionRenewable netMeteringGeneratedKwh netMeteringGridImportKwh netMeteringGridExportKwh exclusion ' +
    'tariff billedDemand supplierName utilityName country timeOfUseBreakdown electricityType serviceAddress',
  'usage.site': siteObject,
  'usage.identifiers': identifiers,
  'usage.timeOfUseBreakdown': 'timeOfUse usage usageUnits description startDate endDate',
  'usage.document': header,
  'usage.document.company': companyObject,
  'usage.document.site': siteObject,
  interval: 'id created updated identifiers account start end usage usageUnits quality',
};

/** Returns the fields of a value, at any depth, that are not known. */
function unknownFields(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => unknownFields(one, path));
  if (typeof value !== 'object' || value === null) return [];
  const known = (knownFields[path] ?? '').split(' ');
  return Object.entries(value).flatMap(([name, inside]) => {
    if (!known.includes(name)) return [`${path}.${name}`];
    const usage = path === 'document' && name === 'usageData';
    return unknownFields(inside, usage ? 'usage' : `${path}.${name}`);
  });
}

describe('records', () => {
  test('service.md 2.2: a company has id, name, externalId and publicId, and its sites', async () => {
    expect(company).toMatchObject({
      id: expect.stringMatching(uuid),
      publicId: expect.stringMatching(uuid),
      externalId: expect.any(String),
      name: expect.any(String),
    });
    expect(company.sites[0]).toMatchObject({ id: expect.stringMatching(uuid), name: expect.any(String) });
    expect((await service.api(`/company/${company.id}`)).body).toEqual(company);
    expect(await recordsOf(service, 'site', company.id, 'sites')).toEqual(company.sites);
    expect((await service.api(`/site/${company.sites[0].id}`)).body).toEqual(company.sites[0]);
  });

  test('service.md 2.4: a connection has every field of the connection payload', async () => {
    const [connection] = await recordsOf(service, 'connection', company.id, 'connections');
    const { id, name, externalId, publicId } = company;
    expect(connection).toMatchObject({
      company: { id, name, externalId, publicId },
      created: expect.stringMatching(timestamp),
      updated: expect.stringMatching(timestamp),
      datasource: { name: expect.any(String) },
      externalId: expect.any(String),
      id: expect.stringMatching(uuid),
      status: expect.any(String),
      url: expect.stringMatching(/^https:/),
      accounts: expect.any(Array),
    });
    for (const { accountIds, datasourceTypes, site } of connection.sitesRelations) {
      expect(accountIds.every((one: unknown) => typeof one === 'string')).toBe(true);
      expect(datasourceTypes.every((one: unknown) => typeof one === 'string')).toBe(true);
      expect(site).toEqual({ id: expect.stringMatching(uuid), name: expect.any(String) });
    }
    expect((await service.api(`/connection/${connection.id}`)).body).toEqual(connection);
    expect((await service.api(`/connection/${connection.id}/details`)).body).toEqual(connection);
  });

  test('service.md 2.5: a document has company, site and timestamps, its usage, line items, and amounts as decimal strings', async () => {
    const [document] = await recordsOf(service, 'document', company.id, 'documents');
    expect(document).toMatchObject({
      id: expect.stringMatching(uuid),
      company: { id: company.id, externalId: company.externalId, publicId: company.publicId },
      site: { id: expect.stringMatching(uuid), name: expect.any(String) },
      created: expect.stringMatching(timestamp),
      updated: expect.stringMatching(timestamp),
      totalCharges: expect.stringMatching(decimal),
      usageData: expect.any(Array),
      lineItems: expect.any(Array),
      demandMeters: expect.any(Array),
    });
    expect(document.usageData.length).toBeGreaterThan(0);
    expect(document.lineItems.length).toBeGreaterThan(1);
    expect((await service.api(`/document/${document.id}`)).body).toEqual(document);
  });

  test('a usage row carries the header of its document, without its usage', async () => {
    const [row] = await recordsOf(service, 'usage', company.id, 'usageData');
    expect(row).toMatchObject({
      id: expect.stringMatching(uuid),
      created: expect.stringMatching(timestamp),
      updated: expect.stringMatching(timestamp),
      usage: expect.stringMatching(decimal),
      meter: expect.stringMatching(uuid),
      document: { id: expect.stringMatching(uuid), totalCharges: expect.stringMatching(decimal) },
    });
    expect(row.document).not.toHaveProperty('usageData');
    expect((await service.api(`/usage/${row.id}`)).body).toEqual(row);
    const ofDocument = envelope(await service.api(`/usage/document/${row.document.id}`), 'usageData');
    expect(ofDocument.items).toContainEqual(row);
    const ofMeter = envelope(await service.api(`/usage/meter/${row.meter}`), 'usageData');
    expect(ofMeter.items).toContainEqual(row);
  });

  test.each(versions)('records of %s have only fields that the service is known to send', async (version) => {
    const list = async (resource: string, items: string, scope = `company/${company.id}`) =>
      envelope<AnyRecord>(await service.api(`/${resource}/${scope}`, { version }), items).items;
    const meters = await list('meter', 'meters');
    const records = {
      company: (await service.api('/company', { version })).body,
      connection: await list('connection', 'connections'),
      meter: meters,
      document: await list('document', 'documents'),
      usage: await list('usage', 'usageData'),
      interval: await list('interval', 'intervals', `meter/${meters[0]?.id}`),
    };
    for (const [name, list] of Object.entries(records)) {
      expect(list, name).not.toHaveLength(0);
      expect([...new Set(unknownFields(list, name))]).toEqual([]);
    }
    expect((await service.api('/ping', { version })).body).toEqual({ version });
  });

  test('an interval record has account, bounds, usage, units and quality', async () => {
    const [meter] = await recordsOf(service, 'meter', company.id, 'meters');
    const { items, total } = envelope<AnyRecord>(
      await service.api(`/interval/meter/${meter.id}`),
      'intervals',
    );
    expect(total).toBe(96);
    expect(items[0]).toEqual({
      id: expect.stringMatching(uuid),
      created: expect.stringMatching(timestamp),
      updated: expect.stringMatching(timestamp),
      account: meter.account,
      start: expect.stringMatching(timestamp),
      end: expect.stringMatching(timestamp),
      usage: expect.stringMatching(decimal),
      usageUnits: expect.any(String),
      quality: expect.any(String),
    });
    expect(new Set(items.map(({ id }) => id)).size).toBe(96);
  });
});

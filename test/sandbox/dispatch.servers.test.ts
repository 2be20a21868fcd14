import { describe, expect, test } from 'vitest';
import { forFile } from '../support/for-file.ts';
import {
  type AnyRecord,
  companiesOf,
  envelope,
  recordsOf,
  type SandboxEvent,
  startService,
} from './support/service.ts';

const timestamp = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$/;

const service = await forFile(startService({ companies: 1, documents: 76, intervalDays: 1 }));
await service.enableWebhooks();
const [company] = (await companiesOf(service)) as [AnyRecord];
const [meter] = (await recordsOf(service, 'meter', company.id, 'meters')) as [AnyRecord];

/** Applies changes and returns their events, with payloads. */
async function eventsOf(...changes: readonly object[]): Promise<SandboxEvent[]> {
  const { events } = await service.change(...changes);
  const [first] = events;
  return first === undefined ? [] : service.eventsAfter(first.seq - 1);
}
const types = (events: readonly SandboxEvent[]) => events.map(({ type }) => type);
const connection = async () => (await recordsOf(service, 'connection', company.id, 'connections'))[0];
const document = async () => (await recordsOf(service, 'document', company.id, 'documents'))[0];
const companyObject = () => {
  const { id, name, externalId, publicId } = company;
  return { id, name, externalId, publicId };
};

describe('connection events', () => {
  test('service.md 6.2 row 1, 2.4, 1.2: connection.created.v2 is emitted once, without eventType, old and protectedChanges', async () => {
    const [event, ...more] = await eventsOf({ type: 'createConnection', companyId: company.id });
    expect(more).toEqual([]);
    expect(event?.type).toBe('connection.created.v2');
    expect(event?.payload).toEqual({
      company: companyObject(),
      created: expect.stringMatching(timestamp),
      datasource: { name: expect.any(String) },
      externalId: expect.any(String),
      id: expect.any(String),
      sitesRelations: [
        {
          accountIds: [],
          datasourceTypes: expect.arrayContaining(['ELECTRICITY']),
          site: { id: company.sites[0].id, name: company.sites[0].name },
        },
      ],
      status: 'PENDING',
      updated: expect.stringMatching(timestamp),
      url: expect.stringMatching(/^https:/),
    });
    const change = { type: 'updateConnection', connectionId: event?.payload.id, externalId: 'again' };
    expect(types(await eventsOf(change))).toEqual(['connection.updated.v2']);
  });

  test('service.md 3.3 row 1: PENDING becomes CONNECTED when credentials are verified, which emits validated and updated', async () => {
    const [created] = await eventsOf({ type: 'createConnection', companyId: company.id });
    const connectionId = created?.payload.id;
    const events = await eventsOf({ type: 'validateConnection', connectionId });
    expect(types(events)).toEqual(['connection.validated.v2', 'connection.updated.v2']);
    const { datasource, ...record } = (await service.api<AnyRecord>(`/connection/${connectionId}`)).body;
    const fields = ['created', 'externalId', 'sitesRelations', 'updated', 'url'];
    for (const { type, payload } of events) {
      expect(payload).toEqual({
        ...Object.fromEntries(fields.map((field) => [field, record[field]])),
        eventType: type,
        id: connectionId,
        datasource: { name: datasource.name },
        status: 'CONNECTED',
        old: { status: 'PENDING' },
        protectedChanges: ['status'],
        company: companyObject(),
      });
      expect(payload.updated > created?.payload.updated).toBe(true);
    }
    expect(record.status).toBe('CONNECTED');
  });

  test('service.md 6.3.2, 6.3.4, 6.2 row 3: every change of status emits validated and updated', async () => {
    const { id } = await connection();
    for (const status of [
      'MFA_TOKEN_EXPIRED',
      'PASSWORD_INCORRECT',
      'WEBSITE_DOWN',
      'A_STATUS_OF_TOMORROW',
      'CONNECTED',
    ]) {
      const before = (await service.api<AnyRecord>(`/connection/${id}`)).body.status;
      const events = await eventsOf({ type: 'updateConnection', connectionId: id, status });
      expect(types(events)).toEqual(['connection.validated.v2', 'connection.updated.v2']);
      for (const { payload } of events) expect(payload).toMatchObject({ status, old: { status: before } });
    }
  });

  test('service.md 6.3.1: a change of status and of another field emits both events, each with both fields in old', async () => {
    const { id, status, externalId } = await connection();
    const change = { type: 'updateConnection', connectionId: id, status: 'OTHER_ERROR', externalId: 'moved' };
    const events = await eventsOf(change);
    expect(types(events)).toEqual(['connection.validated.v2', 'connection.updated.v2']);
    for (const { payload } of events) {
      expect(payload).toMatchObject({
        externalId: 'moved',
        old: { status, externalId },
        protectedChanges: ['status'],
      });
    }
  });

  test('service.md 6.3.3: a change of another field only emits updated, with its previous value', async () => {
    const { id, url } = await connection();
    const [event, ...more] = await eventsOf({
      type: 'updateConnection',
      connectionId: id,
      url: 'https://new.example',
    });
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      type: 'connection.updated.v2',
      payload: {
        eventType: 'connection.updated.v2',
        url: 'https://new.example',
        old: { url },
        protectedChanges: [],
      },
    });
  });

  test('service.md 6.2 row 2: site assignments and accounts are fields of the connection', async () => {
    const { id, sitesRelations } = await connection();
    const served = sitesRelations.map((one: AnyRecord) => one.site.id);
    const other = company.sites.find(
      ({ id: siteId }: AnyRecord) => served.length > 1 || siteId !== served[0],
    );
    const [assigned] = await eventsOf({ type: 'assignSites', connectionId: id, siteIds: [other.id] });
    expect(assigned?.type).toBe('connection.updated.v2');
    expect(assigned?.payload.old).toEqual({ sitesRelations });
    expect(assigned?.payload.sitesRelations).toMatchObject([{ site: { id: other.id, name: other.name } }]);
    const [found] = await eventsOf({ type: 'addAccount', connectionId: id, siteId: other.id });
    expect(found?.type).toBe('connection.updated.v2');
    expect(found?.payload.sitesRelations[0].accountIds).toHaveLength(
      assigned?.payload.sitesRelations[0].accountIds.length + 1,
    );
  });

  test('service.md 2.4: protectedChanges names secret fields that changed, whose values no event shows', async () => {
    const { id, username } = await connection();
    const secrets = {
      username: 'someone-else',
      password: 'p4ssw0rd!',
      securityQuestions: ['first pet: rex'],
    };
    const [event, ...more] = await eventsOf({ type: 'rotateCredentials', connectionId: id, ...secrets });
    expect(more).toEqual([]);
    expect(event?.type).toBe('connection.updated.v2');
    expect(event?.payload.protectedChanges.toSorted()).toEqual(['password', 'securityQuestions', 'username']);
    expect(event?.payload.old).toEqual({});
    for (const secret of [username, 'someone-else', 'p4ssw0rd!', 'rex']) {
      expect(JSON.stringify(event?.payload)).not.toContain(secret);
    }
  });

  test('service.md 6.2 row 2: an update without a change emits nothing', async () => {
    const { id, status, url, username } = await connection();
    const before = (await service.api(`/connection/${id}`)).text;
    const same = await eventsOf(
      { type: 'updateConnection', connectionId: id, status, url },
      { type: 'validateConnection', connectionId: id, status },
      { type: 'rotateCredentials', connectionId: id, username },
    );
    expect(same).toEqual([]);
    expect((await service.api(`/connection/${id}`)).text).toBe(before);
  });
});

describe('document events', () => {
  test('service.md 6.2 row 4, 2.5, 1.3: document.created.v2 is emitted for a new bill', async () => {
    const [event, ...more] = await eventsOf({ type: 'createDocument', meterId: meter.id });
    expect(more).toEqual([]);
    expect(event?.type).toBe('document.created.v2');
    const { id, created, updated, site } = (await service.api<AnyRecord>(`/document/${event?.payload.id}`))
      .body;
    expect(event?.payload).toEqual({
      eventType: 'document.created.v2',
      id,
      company: companyObject(),
      site,
      created,
      updated,
    });
    expect(created).toMatch(timestamp);
  });

  test.each(['correction', 'usageUpdate'])(
    'service.md 6.2 row 5: document.updated.v2 with old is emitted after a %s',
    async (reason) => {
      const before = await document();
      const [event, ...more] = await eventsOf({ type: 'reprocessDocument', documentId: before.id, reason });
      expect(more).toEqual([]);
      const after = (await service.api<AnyRecord>(`/document/${before.id}`)).body;
      const { id, site, created, updated } = after;
      const old = { updated: before.updated };
      const eventType = 'document.updated.v2';
      expect(event?.payload).toEqual({
        eventType,
        id,
        company: companyObject(),
        site,
        created,
        updated,
        old,
      });
      expect(after.updated > before.updated).toBe(true);
      if (reason === 'correction') expect(after.totalCharges).not.toBe(before.totalCharges);
      const rows = envelope<AnyRecord>(await service.api(`/usage/document/${before.id}`), 'usageData').items;
      expect(rows.map(({ usage }) => usage)).not.toEqual(before.usageData.map((row: AnyRecord) => row.usage));
      expect(rows.map(({ id }) => id)).toEqual(before.usageData.map((row: AnyRecord) => row.id));
    },
  );

  test('service.md 6.2 row 5: a meter assignment changes the document, its usage row and its site', async () => {
    const meters = await recordsOf(service, 'meter', company.id, 'meters');
    const before = await document();
    const other = meters.find((one) => one.site !== before.site.id);
    const change = {
      type: 'reprocessDocument',
      documentId: before.id,
      reason: 'meterAssignment',
      meterId: other.id,
    };
    const [event] = await eventsOf(change);
    expect(event?.payload).toMatchObject({ old: { updated: before.updated, site: before.site } });
    const after = (await service.api<AnyRecord>(`/document/${before.id}`)).body;
    expect(after.site).toEqual(event?.payload.site);
    expect(after.site.id).toBe(other.site);
    expect(after.usageData[0].meter).toBe(other.id);
    expect(await eventsOf(change)).toEqual([]);
  });

  test('a superseding document is created, and the old one is updated with the link to it, which can be cleared', async () => {
    const before = await document();
    const events = await eventsOf({ type: 'supersedeDocument', documentId: before.id });
    expect(events).toMatchObject([
      { type: 'document.created.v2' },
      { type: 'document.updated.v2', payload: { id: before.id, old: { updated: before.updated } } },
    ]);
    const read = async (id: string) => (await service.api<AnyRecord>(`/document/${id}`)).body;
    const next = await read(events[0]?.payload.id);
    expect(await read(before.id)).toMatchObject({
      revisedDocumentId: next.id,
      totalCharges: before.totalCharges,
    });
    expect(next).toMatchObject({
      revisedDocumentId: null,
      billDate: before.billDate,
      usageData: before.usageData.map((row: AnyRecord) => ({ meter: row.meter, startDate: row.startDate })),
    });
    expect(next.totalCharges).not.toBe(before.totalCharges);
    const clear = { type: 'linkDocument', documentId: before.id, revisedDocumentId: null };
    expect(await eventsOf(clear)).toMatchObject([
      { type: 'document.updated.v2', payload: { id: before.id } },
    ]);
    expect(await read(before.id)).toMatchObject({ revisedDocumentId: null });
    expect(await eventsOf(clear)).toEqual([]);
  });

  test('service.md 6.2 row 6, 2.5: document.deleted.v2 has the state at the deletion', async () => {
    const { id, company: of, site, created, updated, usageData } = await document();
    const [event, ...more] = await eventsOf({ type: 'deleteDocument', documentId: id });
    expect(more).toEqual([]);
    expect(event).toMatchObject({ type: 'document.deleted.v2' });
    expect(event?.payload).toEqual({
      eventType: 'document.deleted.v2',
      id,
      company: of,
      site,
      created,
      updated,
    });
    expect((await service.api(`/usage/${usageData[0].id}`)).status).toBe(404);
  });

  test('service.md 6.2 row 1: a record is created once, and its id is refused for another record', async () => {
    const [one, { id }] = [await connection(), await document()];
    const { id: siteId } = company.sites[0];
    const before = (await service.api(`/connection/${one.id}`)).text;
    const { events } = await service.change({ type: 'createConnection', companyId: company.id });
    for (const change of [
      { type: 'createConnection', companyId: company.id, id: one.id },
      { type: 'createDocument', meterId: meter.id, id },
      { type: 'supersedeDocument', documentId: id, id },
      { type: 'createCompany', id: company.id },
      { type: 'addAccount', connectionId: one.id, siteId, meterId: meter.id },
    ])
      await expect(service.change(change), change.type).rejects.toThrow('409');
    expect(await service.eventsAfter(events[0]?.seq ?? 0)).toEqual([]);
    expect((await service.api(`/connection/${one.id}`)).text).toBe(before);
  });

  test('a deleted document cannot change, and a refused batch changes nothing', async () => {
    const { id } = await document();
    const connectionId = (await connection()).id;
    const before = (await service.api(`/connection/${connectionId}`)).text;
    await service.change({ type: 'deleteDocument', documentId: id });
    const update = { type: 'updateConnection', connectionId, externalId: 'never' };
    await expect(service.change(update, { type: 'deleteDocument', documentId: id })).rejects.toThrow('409');
    expect((await service.api(`/connection/${connectionId}`)).text).toBe(before);
  });
});

describe('interval events', () => {
  const sync = (more: object) => ({
    type: 'syncIntervals',
    meterId: meter.id,
    start: '2026-08-01T00:00:00',
    end: '2026-08-01T06:00:00',
    granularitySeconds: 3600,
    ...more,
  });

  test('service.md 6.2 row 7, 2.6: intervals.synced names a range, without eventType and without readings', async () => {
    const [event, ...more] = await eventsOf(sync({ usageUnits: 'kWh', quality: 'ESTIMATED' }));
    expect(more).toEqual([]);
    expect(event?.type).toBe('intervals.synced');
    expect(event?.payload).toEqual({
      meterId: meter.id,
      start: '2026-08-01T00:00:00.000000',
      end: '2026-08-01T06:00:00.000000',
      intervalCount: 6,
      createdCount: 6,
      updatedCount: 0,
      companyExternalId: company.externalId,
      accountNumber: meter.identifiers[1].value,
      granularitySeconds: [3600],
      usageUnits: ['kWh'],
      qualities: ['ESTIMATED'],
    });
    const path = `/interval/meter/${meter.id}?startDate=${event?.payload.start}&endDate=${event?.payload.end}`;
    expect(envelope(await service.api(path), 'intervals').total).toBe(6);
  });

  test.each([
    ['insert', 3, 0, 3],
    ['update', 0, 6, 3],
    ['both', 3, 6, 9],
  ])(
    'service.md 2.6: intervalCount = createdCount + updatedCount; mode %s',
    async (mode, created, updated) => {
      const day = { insert: '02', update: '03', both: '04' }[mode as 'insert'];
      const at = (hour: number) => `2026-08-${day}T${hour.toString().padStart(2, '0')}:00:00`;
      await eventsOf(sync({ start: at(0), end: at(6) }));
      const [event] = await eventsOf(sync({ mode, start: at(0), end: at(9) }));
      expect(event?.payload).toMatchObject({
        createdCount: created,
        updatedCount: updated,
        intervalCount: created + updated,
      });
    },
  );

  test('service.md 2.6 row 9, 2.6 row 10, 2.6 row 11: granularities, units and qualities list the values of all readings in the range', async () => {
    const range = { start: '2026-08-10T00:00:00', end: '2026-08-10T03:00:00' };
    await eventsOf(sync({ ...range, usageUnits: 'KW', quality: 'ESTIMATED' }));
    const [event] = await eventsOf(sync({ ...range, usageUnits: 'kWh', granularitySeconds: 900 }));
    expect(event?.payload).toMatchObject({
      intervalCount: 12,
      granularitySeconds: [900, 3600],
      usageUnits: ['KW', 'kWh'],
      qualities: ['ACTUAL', 'ESTIMATED'],
    });
  });

  test('an update changes values and moves updated, and an update without a change emits nothing', async () => {
    const range = { start: '2026-08-05', end: '2026-08-06', usageUnits: 'KW' };
    expect(await eventsOf(sync({ ...range, mode: 'update' }))).toEqual([]);
    await eventsOf(sync(range));
    const path = `/interval/meter/${meter.id}?startDate=2026-08-05&endDate=2026-08-06`;
    const before = envelope<AnyRecord>(await service.api(path), 'intervals').items;
    expect(await eventsOf(sync({ ...range, mode: 'insert' }))).toEqual([]);
    await eventsOf(sync({ ...range, mode: 'update' }));
    const after = envelope<AnyRecord>(await service.api(path), 'intervals').items;
    for (const [index, one] of after.entries()) {
      expect(one.id).toBe(before[index]?.id);
      expect(one.usage).not.toBe(before[index]?.usage);
      expect(one.created).toBe(before[index]?.created);
      expect(one.updated > before[index]?.updated).toBe(true);
    }
  });
});

describe('when events fire', () => {
  test('service.md 6.1.3: a change of only timestamps emits nothing, although updated moves', async () => {
    for (const [resource, record] of [
      ['connection', await connection()],
      ['document', await document()],
    ] as const) {
      expect(await eventsOf({ type: 'touch', resource, id: record.id })).toEqual([]);
      const after = (await service.api<AnyRecord>(`/${resource}/${record.id}`)).body;
      expect(after.updated > record.updated).toBe(true);
      expect({ ...after, updated: record.updated }).toEqual(record);
    }
  });

  test('changes of one batch see one another, and their events keep their order', async () => {
    const id = '11111111-2222-4333-8444-555555555555';
    const events = await eventsOf(
      { type: 'createConnection', companyId: company.id, id },
      { type: 'validateConnection', connectionId: id },
      { type: 'updateConnection', connectionId: id, externalId: 'x' },
      { type: 'validateConnection', connectionId: id, status: 'MFA_TOKEN_EXPIRED' },
    );
    expect(types(events)).toEqual([
      'connection.created.v2',
      'connection.validated.v2',
      'connection.updated.v2',
      'connection.updated.v2',
      'connection.validated.v2',
      'connection.updated.v2',
    ]);
    expect(events.map(({ payload }) => payload.old)).toEqual([
      undefined,
      { status: 'PENDING' },
      { status: 'PENDING' },
      { externalId: expect.any(String) },
      { status: 'CONNECTED' },
      { status: 'CONNECTED' },
    ]);
  });

  test('every change of a record moves its updated strictly forward, in microseconds', async () => {
    const { id } = await connection();
    const changes = Array.from({ length: 20 }, (_, n) => ({
      type: 'updateConnection',
      connectionId: id,
      externalId: `step ${n}`,
    }));
    const updates = (await eventsOf(...changes)).map(({ payload }) => payload.updated as string);
    expect(updates).toHaveLength(20);
    expect(updates).toEqual([...new Set(updates)].sort());
  });
});

describe('random changes', () => {
  test('have the requested number, are valid and emit events of every type', async () => {
    const result = await service.control<AnyRecord>('POST', '/sandbox/random', { count: 600, seed: 3 });
    expect(result.changes).toBe(600);
    const sum = (counts: Record<string, number>) => Object.values(counts).reduce((total, n) => total + n, 0);
    expect(sum(result.changesByType)).toBe(600);
    expect(sum(result.byType)).toBe(result.events);
    expect(Object.keys(result.byType)).toHaveLength(7);
    expect(service.errors).toEqual([]);
  });
});

import { describe, expect, test } from 'vitest';
import { forFile } from '../support/for-file.ts';
import {
  type AnyRecord,
  companiesOf,
  numbered,
  recordsOf,
  type SandboxEvent,
  startService,
} from './support/service.ts';

const service = await forFile(startService({ companies: 1, documents: 76, intervalDays: 1 }));
await service.enableWebhooks();
const [company] = (await companiesOf(service)) as [AnyRecord];
const list = (resource: string, items: string) => recordsOf(service, resource, company.id, items);
const meters = await list('meter', 'meters');
const [meter] = meters as [AnyRecord];
const bills = await list('document', 'documents');
const [bill] = bills as [AnyRecord];
const [site, otherSite] = company.sites as [AnyRecord, AnyRecord];
const read = async (resource: string, id: string) =>
  (await service.api<AnyRecord>(`/${resource}/${id}`)).body;

/** Applies changes and returns their events, with payloads. */
async function eventsOf(...changes: readonly object[]): Promise<SandboxEvent[]> {
  const { events } = await service.change(...changes);
  const [first] = events;
  return first === undefined ? [] : service.eventsAfter(first.seq - 1);
}

const connectionId = '11111111-2222-4333-8444-555555555555';
const billId = '21111111-2222-4333-8444-555555555555';
const revisedId = '31111111-2222-4333-8444-555555555555';
const elsewhere = meters.find((one) => one.site !== bill.site.id && one.datasourceType === 'ELECTRICITY');

const readings = (day: string, until: string, more: object = {}) => ({
  type: 'syncIntervals',
  meterId: meter.id,
  start: `2026-08-${day}T00:00:00`,
  end: `2026-08-${day}T${until}:00:00`,
  granularitySeconds: 3600,
  ...more,
});
const update = (more: object) => ({ type: 'updateConnection', connectionId, ...more });
const validate = (more: object = {}) => ({ type: 'validateConnection', connectionId, ...more });
const assign = {
  type: 'reprocessDocument',
  documentId: bill.id,
  reason: 'meterAssignment',
  meterId: elsewhere.id,
};
const secrets = { username: 'someone-else', password: 'p4ssw0rd!', securityQuestions: ['first pet: rex'] };

/** Changes in their order, by what happens. Each is a batch. */
const changes: Readonly<Record<string, object | readonly object[]>> = {
  'a connection is created': {
    type: 'createConnection',
    companyId: company.id,
    id: connectionId,
    siteIds: [site.id],
    externalId: 'first',
    datasource: 'Grid',
    url: 'https://grid.example',
  },
  'its credentials are verified': validate(),
  'its status changes': update({ status: 'MFA_TOKEN_EXPIRED' }),
  'its status becomes one that nobody knows': update({ status: 'A_STATUS_OF_TOMORROW' }),
  'its status and another field change': update({ status: 'OTHER_ERROR', externalId: 'moved' }),
  'only another field changes': update({ url: 'https://new.example' }),
  'sites are assigned': { type: 'assignSites', connectionId, siteIds: [otherSite.id] },
  'an account is found': { type: 'addAccount', connectionId, siteId: otherSite.id, id: billId },
  'secrets change': { type: 'rotateCredentials', connectionId, ...secrets },
  'nothing changes': [
    update({ status: 'OTHER_ERROR', url: 'https://new.example' }),
    validate({ status: 'OTHER_ERROR' }),
    { type: 'rotateCredentials', connectionId, username: 'someone-else' },
  ],
  'several changes of one batch': [
    validate(),
    update({ externalId: 'x' }),
    validate({ status: 'MFA_TOKEN_EXPIRED' }),
  ],
  'a bill arrives': { type: 'createDocument', meterId: meter.id, id: billId },
  'a bill is corrected': { type: 'reprocessDocument', documentId: bill.id, reason: 'correction' },
  'the usage of a bill changes': { type: 'reprocessDocument', documentId: bill.id, reason: 'usageUpdate' },
  'a bill is assigned to a meter of another site': assign,
  'a bill is assigned to the meter that it has': assign,
  'a bill is superseded': { type: 'supersedeDocument', documentId: bill.id, id: revisedId },
  'the link to its successor is cleared': {
    type: 'linkDocument',
    documentId: bill.id,
    revisedDocumentId: null,
  },
  'the link is cleared again': { type: 'linkDocument', documentId: bill.id, revisedDocumentId: null },
  'a bill is deleted': { type: 'deleteDocument', documentId: billId },
  'readings arrive': readings('01', '06', { quality: 'ESTIMATED' }),
  'the same readings arrive as new': readings('01', '06', { mode: 'insert' }),
  'the same readings and later ones arrive as new': readings('01', '09', { mode: 'insert' }),
  'readings change': readings('01', '09', { mode: 'update' }),
  'readings that do not exist change': readings('02', '09', { mode: 'update' }),
  'readings change and arrive': readings('01', '12'),
  'readings of another length and unit arrive': readings('01', '03', {
    granularitySeconds: 900,
    usageUnits: 'KW',
  }),
};

test('service.md 1.2, 1.3, 2.4, 2.5, 2.6, 3.3, 6.2, 6.3: the events of each change are as in the golden file', async () => {
  const number = numbered();
  const told: string[] = [];
  for (const [what, batch] of Object.entries(changes)) {
    told.push(`# ${what}`);
    for (const { type, payload } of await eventsOf(...[batch].flat()))
      told.push(number(`${type} ${JSON.stringify(payload)}`));
  }
  const text = `${told.join('\n')}\n`;
  for (const secret of ['someone-else', 'p4ssw0rd!', 'rex']) expect(text).not.toContain(secret);
  await expect(text).toMatchFileSnapshot('golden/events.txt');
});

describe('records after these changes', () => {
  test('show what the events announced', async () => {
    expect(await read('connection', connectionId)).toMatchObject({
      status: 'MFA_TOKEN_EXPIRED',
      externalId: 'x',
      url: 'https://new.example',
      sitesRelations: [{ site: { id: otherSite.id } }],
    });
    const [after, next] = [await read('document', bill.id), await read('document', revisedId)];
    expect(after.updated > bill.updated).toBe(true);
    expect(after.site.id).toBe(elsewhere.site);
    expect(after.usageData).toMatchObject([{ id: bill.usageData[0].id, meter: elsewhere.id }]);
    expect(after.usageData[0].usage).not.toBe(bill.usageData[0].usage);
    expect(next).toMatchObject({ billDate: bill.billDate, revisedDocumentId: null });
    expect(new Set([bill, after, next].map(({ totalCharges }) => totalCharges)).size).toBe(3);
    expect((await service.api(`/document/${billId}`)).status).toBe(404);
  });

  test('service.md 6.2 row 1: are created once, and their ids are refused for other records', async () => {
    for (const change of [
      { type: 'createConnection', companyId: company.id, id: connectionId },
      { type: 'createDocument', meterId: meter.id, id: bill.id },
      { type: 'supersedeDocument', documentId: bill.id, id: revisedId },
      { type: 'createCompany', id: company.id },
      { type: 'addAccount', connectionId, siteId: site.id, meterId: meter.id },
    ])
      await expect(service.change(change), change.type).rejects.toThrow('409');
  });

  test('do not change if one change of the batch is refused', async () => {
    const before = (await service.api(`/connection/${connectionId}`)).text;
    const again = { type: 'deleteDocument', documentId: billId };
    await expect(service.change(update({ externalId: 'never' }), again)).rejects.toThrow('409');
    expect((await service.api(`/connection/${connectionId}`)).text).toBe(before);
  });

  test('service.md 6.1.3: emit nothing when only their timestamps change', async () => {
    for (const [resource, id] of [
      ['connection', connectionId],
      ['document', bill.id],
    ]) {
      const before = await read(`${resource}`, id);
      expect(await eventsOf({ type: 'touch', resource, id })).toEqual([]);
      const after = await read(`${resource}`, id);
      expect(after.updated > before.updated).toBe(true);
      expect({ ...after, updated: before.updated }).toEqual(before);
    }
  });

  test('have an `updated` that moves strictly forward, in microseconds', async () => {
    const steps = Array.from({ length: 20 }, (_, n) => update({ externalId: `step ${n}` }));
    const updates = (await eventsOf(...steps)).map(({ payload }) => payload.updated as string);
    expect(updates).toHaveLength(20);
    expect(updates).toEqual([...new Set(updates)].sort());
  });
});

test('random changes have the requested number, are valid and emit events of every type', async () => {
  const result = await service.control<AnyRecord>('POST', '/sandbox/random', { count: 600, seed: 3 });
  expect(result.changes).toBe(600);
  expect(Object.keys(result.byType)).toHaveLength(7);
  expect(service.errors).toEqual([]);
});

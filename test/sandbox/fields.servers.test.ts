import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type AnyRecord,
  companiesOf,
  envelope,
  recordsOf,
  type Service,
  startService,
} from './support/service.ts';

const timestamp = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** One payload of each type, and the records as the API shows them afterwards. */
interface Seen {
  company: AnyRecord;
  connectionCreated: AnyRecord;
  connectionUpdated: AnyRecord;
  connectionValidated: AnyRecord;
  connection: AnyRecord;
  documentCreated: AnyRecord;
  documentUpdated: AnyRecord;
  documentDeleted: AnyRecord;
  /** The document between its update and its deletion. */
  document: AnyRecord;
  intervals: AnyRecord;
  meter: AnyRecord;
}
let service: Service;
let seen: Seen;

beforeAll(async () => {
  service = await startService({ companies: 1, documents: 6, intervalDays: 1 });
  await service.enableWebhooks();
  const [company] = (await companiesOf(service)) as [AnyRecord];
  const [meter] = (await recordsOf(service, 'meter', company.id, 'meters')) as [AnyRecord];
  const { changes } = await service.change(
    { type: 'createConnection', companyId: company.id },
    { type: 'createDocument', meterId: meter.id },
  );
  const [connectionId, documentId] = changes.map(({ id }) => id);
  await service.change(
    { type: 'addAccount', connectionId, siteId: company.sites[0].id },
    { type: 'validateConnection', connectionId },
    { type: 'reprocessDocument', documentId },
    {
      type: 'syncIntervals',
      meterId: meter.id,
      start: '2026-06-30T12:00:00',
      end: '2026-07-02T00:00:00',
      granularitySeconds: 900,
      usageUnits: (await intervalsOf(meter.id))[0]?.usageUnits,
    },
  );
  const document = (await service.api<AnyRecord>(`/document/${documentId}`)).body;
  await service.change({ type: 'deleteDocument', documentId });
  const events = await service.eventsAfter(0);
  const last = (type: string) => events.filter((event) => event.type === type).at(-1)?.payload;
  seen = {
    company,
    meter,
    document,
    connection: (await service.api<AnyRecord>(`/connection/${connectionId}`)).body,
    connectionCreated: last('connection.created.v2'),
    connectionUpdated: last('connection.updated.v2'),
    connectionValidated: last('connection.validated.v2'),
    documentCreated: last('document.created.v2'),
    documentUpdated: last('document.updated.v2'),
    documentDeleted: last('document.deleted.v2'),
    intervals: last('intervals.synced'),
  };
});
afterAll(() => service.stop());

async function intervalsOf(meterId: string, query = ''): Promise<AnyRecord[]> {
  const { items } = envelope<AnyRecord>(await service.api(`/interval/meter/${meterId}${query}`), 'intervals');
  return items as AnyRecord[];
}

type Row = readonly [title: string, check: (from: Seen) => void | Promise<void>];
const connectionPayloads = ({ connectionCreated, connectionUpdated, connectionValidated }: Seen) => [
  connectionCreated,
  connectionUpdated,
  connectionValidated,
];
const documentPayloads = ({ documentCreated, documentUpdated, documentDeleted }: Seen) => [
  documentCreated,
  documentUpdated,
  documentDeleted,
];
const embedded = (from: Seen) =>
  [...connectionPayloads(from), ...documentPayloads(from)].map(({ company }) => company);

const companyRows: readonly Row[] = [
  [
    'seed 2.2 row 1: company.externalId is the customer’s own',
    (from) => {
      for (const one of embedded(from)) expect(one.externalId).toBe(from.company.externalId);
    },
  ],
  [
    'seed 2.2 row 2: company.id is a UUID',
    (from) => {
      for (const one of embedded(from)) expect(one.id).toMatch(uuid);
    },
  ],
  [
    'seed 2.2 row 3: company.name',
    (from) => {
      for (const one of embedded(from)) expect(one.name).toBe(from.company.name);
    },
  ],
  [
    'seed 2.2 row 4: company.publicId is a UUID',
    (from) => {
      for (const one of embedded(from))
        expect([one.publicId, one.publicId]).toEqual([expect.stringMatching(uuid), from.company.publicId]);
    },
  ],
  [
    'seed 2.3 row 1: site.id is a UUID of one of the company’s sites',
    (from) => {
      for (const { site } of documentPayloads(from)) {
        expect(from.company.sites.map(({ id }: AnyRecord) => id)).toContain(site.id);
      }
    },
  ],
  [
    'seed 2.3 row 2: site.name',
    (from) => {
      for (const { site } of documentPayloads(from)) expect(Object.keys(site).sort()).toEqual(['id', 'name']);
    },
  ],
];

/** A field that the payloads share with the record. */
const sameAsRecord = (title: string, field: string): Row => [
  title,
  (from) => {
    for (const payload of [from.connectionUpdated, from.connectionValidated]) {
      expect(payload[field]).toEqual(from.connection[field]);
    }
    expect(from.connectionCreated).toHaveProperty(field);
  },
];

const connectionRows: readonly Row[] = [
  sameAsRecord('seed 2.4 row 1: connection payloads carry company', 'company'),
  sameAsRecord('seed 2.4 row 2: connection payloads carry created', 'created'),
  [
    'seed 2.4 row 3: connection payloads carry datasource with its name alone',
    (from) => {
      for (const { datasource } of connectionPayloads(from))
        expect(datasource).toEqual({ name: from.connection.datasource.name });
    },
  ],
  sameAsRecord('seed 2.4 row 4: connection payloads carry externalId', 'externalId'),
  sameAsRecord('seed 2.4 row 5: connection payloads carry id', 'id'),
  [
    'seed 2.4 row 6: sitesRelations have accountIds, datasourceTypes and site, here with ELECTRICITY',
    (from) => {
      for (const { sitesRelations } of [from.connectionUpdated, from.connection]) {
        expect(sitesRelations).toEqual([
          {
            accountIds: [expect.any(String)],
            datasourceTypes: expect.arrayContaining(['ELECTRICITY']),
            site: { id: from.company.sites[0].id, name: from.company.sites[0].name },
          },
        ]);
      }
    },
  ],
  sameAsRecord('seed 2.4 row 7: connection payloads carry status', 'status'),
  [
    'seed 2.4 row 8: connection payloads carry updated, of the moment of the event',
    (from) => {
      expect(from.connectionValidated.updated).toBe(from.connection.updated);
      expect(from.connectionCreated.updated < from.connection.updated).toBe(true);
    },
  ],
  sameAsRecord('seed 2.4 row 9: connection payloads carry url', 'url'),
  [
    'seed 2.4 row 10: eventType on updated and validated equals the type; created has none',
    (from) => {
      expect(from.connectionUpdated.eventType).toBe('connection.updated.v2');
      expect(from.connectionValidated.eventType).toBe('connection.validated.v2');
      expect(from.connectionCreated).not.toHaveProperty('eventType');
    },
  ],
  [
    'seed 2.4 row 11: protectedChanges on updated and validated names status; created has none',
    (from) => {
      expect(from.connectionUpdated.protectedChanges).toEqual(['status']);
      expect(from.connectionValidated.protectedChanges).toEqual(['status']);
      expect(from.connectionCreated).not.toHaveProperty('protectedChanges');
    },
  ],
  [
    'seed 2.4 row 12: old on updated and validated has the status before; created has none',
    (from) => {
      expect(from.connectionUpdated.old).toEqual({ status: 'PENDING' });
      expect(from.connectionValidated.old).toEqual({ status: 'PENDING' });
      expect(from.connectionCreated).not.toHaveProperty('old');
    },
  ],
];

const documentRows: readonly Row[] = [
  [
    'seed 2.5 row 1: eventType equals the type of the event',
    (from) => {
      expect(documentPayloads(from).map(({ eventType }) => eventType)).toEqual([
        'document.created.v2',
        'document.updated.v2',
        'document.deleted.v2',
      ]);
    },
  ],
  [
    'seed 2.5 row 2: id is the document’s',
    (from) => {
      for (const { id } of documentPayloads(from)) expect(id).toBe(from.document.id);
    },
  ],
  [
    'seed 2.5 row 3: company is the company object',
    (from) => {
      for (const { company } of documentPayloads(from)) expect(company).toEqual(from.document.company);
    },
  ],
  [
    'seed 2.5 row 4: site is the site object',
    (from) => {
      for (const { site } of documentPayloads(from)) expect(site).toEqual(from.document.site);
    },
  ],
  [
    'seed 2.5 row 5: created stays',
    (from) => {
      for (const { created } of documentPayloads(from)) expect(created).toBe(from.document.created);
    },
  ],
  [
    'seed 2.5 row 6: updated is that of the moment; at deletion, of the state that was deleted',
    (from) => {
      expect(from.documentUpdated.updated).toBe(from.document.updated);
      expect(from.documentDeleted.updated).toBe(from.document.updated);
      expect(from.documentCreated.updated < from.document.updated).toBe(true);
    },
  ],
  [
    'seed 2.5 row 7: old is on document.updated.v2 alone, with the previous updated',
    (from) => {
      expect(from.documentUpdated.old).toEqual({ updated: from.documentCreated.updated });
      expect(from.documentCreated).not.toHaveProperty('old');
      expect(from.documentDeleted).not.toHaveProperty('old');
    },
  ],
];

const intervalRows: readonly Row[] = [
  [
    'seed 2.6 row 1, 2.6 row 2, 2.6 row 3: meterId, start and end fetch exactly the intervals that were synced',
    async ({ intervals }) => {
      const synced = await intervalsOf(
        intervals.meterId,
        `?startDate=${intervals.start}&endDate=${intervals.end}`,
      );
      const total = (
        await service.api<AnyRecord>(
          `/interval/meter/${intervals.meterId}?startDate=${intervals.start}&endDate=${intervals.end}`,
        )
      ).body.totalIntervals;
      expect(total).toBe(intervals.intervalCount);
      expect(synced[0].start).toBe(intervals.start);
      expect(intervals.end).toMatch(timestamp);
    },
  ],
  [
    'seed 2.6 row 4, 2.6 row 5, 2.6 row 6: intervalCount is createdCount and updatedCount together, here both',
    ({ intervals }) => {
      expect(intervals.intervalCount).toBe(intervals.createdCount + intervals.updatedCount);
      expect(intervals.intervalCount).toBe(36 * 4);
      expect(intervals.createdCount).toBeGreaterThan(0);
      expect(intervals.updatedCount).toBeGreaterThan(0);
    },
  ],
  [
    'seed 2.6 row 7: companyExternalId is the company’s',
    ({ intervals, company }) => expect(intervals.companyExternalId).toBe(company.externalId),
  ],
  [
    'seed 2.6 row 8: accountNumber is that of the meter’s account',
    ({ intervals, meter }) => expect(intervals.accountNumber).toBe(meter.identifiers[1].value),
  ],
  [
    'seed 2.6 row 9: granularitySeconds lists those of the range',
    ({ intervals }) => expect(intervals.granularitySeconds).toEqual([900]),
  ],
  [
    'seed 2.6 row 10: usageUnits lists those of the range',
    async ({ intervals, meter }) => {
      const units = (await intervalsOf(meter.id)).map(({ usageUnits }) => usageUnits);
      expect(intervals.usageUnits).toEqual([...new Set(units)]);
    },
  ],
  [
    'seed 2.6 row 11: qualities lists those of the range',
    ({ intervals }) => expect(intervals.qualities).toEqual(['ACTUAL']),
  ],
];

const envelopeRows: readonly Row[] = [
  [
    'seed 2.7 row 1, 2.7 row 7: total and items are named after what the list holds',
    async ({ company }) => {
      for (const [path, items, total] of [
        ['document', 'documents', 'totalDocuments'],
        ['usage', 'usageData', 'totalUsageData'],
        ['meter', 'meters', 'totalMeters'],
        ['connection', 'connections', 'totalConnections'],
      ] as const) {
        const { body } = await service.api<AnyRecord>(`/${path}/company/${company.id}`);
        expect(body[items].length).toBe(body[total]);
      }
    },
  ],
  [
    'seed 2.7 row 2, 2.7 row 3, 2.7 row 4, 2.7 row 5, 2.7 row 6: place and number of pages',
    async ({ company }) => {
      const { total } = envelope(await service.api(`/connection/company/${company.id}`), 'connections');
      for (let page = 1; page <= total; page++) {
        const { body } = await service.api<AnyRecord>(
          `/connection/company/${company.id}?limit=1&page=${page}`,
        );
        expect(body).toMatchObject({
          perPage: 1,
          totalPages: total,
          currentPage: page,
          hasNext: page < total,
          hasPrevious: page > 1,
        });
      }
    },
  ],
];

describe('fields of payloads and records', () => {
  test.each([...companyRows, ...connectionRows, ...documentRows, ...intervalRows, ...envelopeRows])(
    '%s',
    async (_title, check) => {
      await check(seen);
    },
  );

  test('seed 2: every timestamp in an event has microseconds and no zone, every identifier is a UUID', async () => {
    const wrong: string[] = [];
    const look = (value: unknown, path: string): void => {
      if (typeof value === 'object' && value !== null) {
        for (const [key, inner] of Object.entries(value)) look(inner, `${path}.${key}`);
      } else if (/\.(created|updated|start|end)$/.test(path) && !timestamp.test(String(value)))
        wrong.push(path);
      else if (/\.(id|publicId|meterId)$/.test(path) && !uuid.test(String(value))) wrong.push(path);
    };
    for (const { type, payload } of await service.eventsAfter(0)) look(payload, type);
    expect(wrong).toEqual([]);
  });
});

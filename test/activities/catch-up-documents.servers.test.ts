import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import type { EndpointCatalogue } from '../../contract/endpoints.ts';
import { batches } from '../../contract/limits.ts';
import { recordPolicy } from '../../contract/retry-policy.ts';
import { recordEvents } from '../../db/events/record.ts';
import { readHealth } from '../../db/read/health.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn, outcomes, queues } from '../support/activities.ts';
import { company, delivery, documentEvent } from '../support/events.ts';
import { shapeOf } from '../support/scripted-service.ts';

const created = '2026-05-01T00:00:00.000001';
const updated = '2026-05-01T00:00:00.000002';
const withoutSingle = { document: null, documentUsage: null };
const notThere: Reply = { status: 404, json: { detail: 'Not found.' } };

interface Usage {
  readonly id: string;
  readonly document: { readonly id: string };
}

/** A service with the documents of a company. Each document has some usage rows. */
class Service {
  documents: { id: string; created: string; updated: string }[] = [];
  usage: Usage[] = [];
  corrections = 0;
  readonly lacks: ReadonlySet<'document' | 'documentUsage'>;
  /** Called after each page of the usage listing, and after each single document. */
  onUsagePage: (page: number) => void = () => {};
  onDocument: (id: string) => void = () => {};
  /** Returns a false answer, or undefined for the true answer. */
  lie: (asked: Asked) => Reply | undefined = () => undefined;

  constructor(lacks: readonly ('document' | 'documentUsage')[] = []) {
    this.lacks = new Set(lacks);
  }

  add(rows: number): string {
    const id = randomUUID();
    this.documents.push({ id, created, updated });
    for (let row = 0; row < rows; row++) this.usage.push({ id: randomUUID(), document: { id } });
    return id;
  }

  /** Makes a newer state of the document, and returns its event. */
  correct(id: string) {
    const later = `2026-05-01T00:00:01.${String(++this.corrections).padStart(6, '0')}`;
    this.documents = [
      ...this.documents.filter((document) => document.id !== id),
      { id, created, updated: later },
    ];
    return delivery(documentEvent('updated', id, later));
  }

  remove(id: string): void {
    this.documents = this.documents.filter((document) => document.id !== id);
    this.usage = this.usage.filter(({ document }) => document.id !== id);
  }

  answer = (asked: Asked): Reply => this.lie(asked) ?? this.truth(asked);

  truth(asked: Asked): Reply {
    const [, , resource, scope, id] = asked.path.split('/');
    const document = this.documents.find((held) => held.id === scope || held.id === id);
    if (asked.path === '/v2.2/company') return { json: [company] };
    if (resource === 'meter') return pageOf([], asked, shapeOf('meters'));
    if (resource === 'document' && scope === 'company') return pageOf(this.documents, asked);
    if (resource === 'document') {
      if (document === undefined || this.lacks.has('document')) return notThere;
      this.onDocument(document.id);
      return { json: document };
    }
    if (resource === 'usage' && scope === 'document') {
      if (document === undefined || this.lacks.has('documentUsage')) return notThere;
      const rows = this.usage.filter(({ document }) => document.id === id);
      return pageOf(rows, asked, shapeOf('usageData'));
    }
    const reply = pageOf(this.usage, asked, shapeOf('usageData'));
    this.onUsagePage(Number(asked.query.get('page')));
    return reply;
  }
}

async function caughtUp(
  service: Service,
  documentIds: readonly string[],
  endpoints: Partial<EndpointCatalogue> = {},
): Promise<ActivitiesUnderTest> {
  const under = await activitiesOn(service.answer, endpoints);
  const events = documentIds.map((id) => delivery(documentEvent('updated', id, updated)));
  await recordEvents(under.warehouse.db, events);
  await catchUp(under);
  return under;
}

const catchUp = ({ run, activities }: ActivitiesUnderTest) =>
  run(activities.sweepOwners, { owners: queues('documents', [company.id]) });

const liveUsage = async ({ warehouse }: ActivitiesUnderTest) => {
  const result = await warehouse.db.execute<{ id: string }>(
    sql`select id from utility.usage_data where deleted_at is null order by id`,
  );
  return result.rows.map(({ id }) => id);
};
const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
const idsOf = (usage: readonly Usage[]) => usage.map(({ id }) => id).sort();

describe('catching up on documents', () => {
  test('gives up a usage listing that never ends for one document, and reads the other documents', async () => {
    const service = new Service();
    const [endless, good] = [service.add(1), service.add(1)];
    let pages = 0;
    service.lie = ({ path }) => {
      if (!path.endsWith(`/usage/document/${endless}`)) return undefined;
      pages += 1;
      return { json: { usageData: [{ id: randomUUID(), note: 'x'.repeat(4_000_000) }], hasNext: true } };
    };
    const under = await caughtUp(service, [endless, good]);
    const { rows } = await under.warehouse.db.execute(
      sql`select record_id, outcome, error_code from metersync.events order by outcome`,
    );
    expect(rows).toEqual([
      { record_id: good, outcome: 'applied', error_code: null },
      { record_id: endless, outcome: 'pending', error_code: 'SERVICE_ANSWER_UNREADABLE' },
    ]);
    expect(pages).toBeLessThan(20);
  });

  test('reads a few documents one by one and many from their listing, and always usage document by document', async () => {
    const [few, many] = [new Service(), new Service()];
    const ofFew = Array.from({ length: 3 }, () => few.add(2));
    const ofMany = Array.from({ length: 30 }, () => many.add(2));
    const underFew = await caughtUp(few, ofFew);
    expect(underFew.asked().filter((path) => path.startsWith('/document/company'))).toEqual([]);
    const underMany = await caughtUp(many, ofMany);
    expect(underMany.asked().filter((path) => path.startsWith('/document/'))).toEqual([
      `/document/company/${company.id}?page=1`,
    ]);
    expect([await liveUsage(underFew), await liveUsage(underMany)]).toEqual([
      idsOf(few.usage),
      idsOf(many.usage),
    ]);
    expect([await outcomes(underFew), await outcomes(underMany)]).toEqual([{ applied: 3 }, { applied: 30 }]);
  });

  test.each([3, 30])(
    'loses no usage of %i documents if the catalogue names endpoints that the service lacks',
    async (count) => {
      const service = new Service(['document', 'documentUsage']);
      const ids = Array.from({ length: count }, () => service.add(2));
      const under = await caughtUp(service, ids);
      expect(await liveUsage(under)).toEqual(idsOf(service.usage));
      expect(await outcomes(under)).toEqual({ applied: count });
    },
  );

  test('very many documents are read from the listings, in a lane of their own', async () => {
    const service = new Service();
    const ids = Array.from({ length: batches.documents + 100 }, () => service.add(1));
    const gone = ids[7] as string;
    service.remove(gone);
    const under = await activitiesOn(service.answer);
    await recordEvents(
      under.warehouse.db,
      ids.map((id) => delivery(documentEvent('updated', id, updated))),
    );
    const owners = queues('documents', [company.id]);
    expect(await under.run(under.activities.sweepOwners, { owners })).toEqual({ large: owners });
    expect(under.asked()).toEqual([]);
    expect(await under.run(under.activities.sweepOwners, { owners, walks: true })).toEqual({ large: [] });
    expect(await outcomes(under)).toEqual({ applied: ids.length - 1, pending: 1 });
    expect(await liveUsage(under)).toEqual(idsOf(service.usage));
    const asked = under.asked();
    // Six pages of documents, and two passes over six of usage. Then the document that the listing lacks is
    // searched on the first and the last page, and on all of them.
    expect(asked.filter((path) => path.startsWith('/document/company/'))).toHaveLength(6 + 2 + 6);
    expect(asked.filter((path) => path.startsWith('/usage/company/'))).toHaveLength(2 * 6);
    expect(asked.length).toBeLessThan(ids.length / 10);
  });

  test('an endpoint that the service lacks is not asked again until its probe succeeds', async () => {
    const lacks = new Set<'document' | 'documentUsage'>(['document', 'documentUsage']);
    const service = new Service();
    Object.assign(service, { lacks });
    const under = await caughtUp(service, [service.add(1), service.add(1)]);
    const { db } = under.warehouse;
    const single = () => under.asked().filter((path) => /^\/(?:document|usage\/document)\/[^/]+$/.test(path));
    const closed = async () =>
      (await db.execute<{ scope: string }>(sql`select scope from metersync.gates order by 1`)).rows.map(
        ({ scope }) => scope,
      );
    const probe = async () => {
      await db.execute(sql`update metersync.gates set next_probe_at = clock_timestamp()`);
      const { probes } = await under.run(under.activities.dueForSweep, { limit: 1, except: [] });
      await under.run(under.activities.probeGates, { scopes: probes });
    };
    const scopes = ['endpoint/document', 'endpoint/documentUsage'];
    expect(await closed()).toEqual(scopes);
    expect((await readHealth(db)).parked).toMatchObject([{ code: 'SERVICE_NOT_FOUND', events: 0 }]);
    const asked = single().length;
    await recordEvents(
      db,
      service.documents.map(({ id }) => service.correct(id)),
    );
    await catchUp(under);
    expect(single()).toHaveLength(asked);
    await probe();
    expect(single()).toHaveLength(asked + 2);
    expect(await closed()).toEqual(scopes);
    lacks.clear();
    await probe();
    expect(await closed()).toEqual([]);
    expect(await liveUsage(under)).toEqual(idsOf(service.usage));
    expect(await outcomes(under)).toEqual({ applied: 4 });

    lacks.add('document');
    const runId = randomUUID();
    await under.run(under.activities.beginRun, { runId, kind: 'full' });
    await under.run(under.activities.concludeRun, { runId });
    expect(await closed()).toEqual(['endpoint/document']);
  });

  test('only documents that fail, or whose usage fails, wait until the service answers', async () => {
    const service = new Service();
    const [failing, halfFailing, fine] = [service.add(2), service.add(2), service.add(2)];
    const fails = (asked: Asked) =>
      asked.path.endsWith(`/document/${failing}`) || asked.path.endsWith(`/usage/document/${halfFailing}`);
    service.lie = (asked) => (fails(asked) ? { status: 500, json: {} } : undefined);
    const under = await caughtUp(service, [failing, halfFailing, fine]);
    const { db } = under.warehouse;
    const waiting = sql`select record_id as id, error_code as code, attempts from metersync.events
      where outcome = 'pending' and next_attempt_at is not null order by record_id`;
    const expected = (attempts: number) =>
      [failing, halfFailing].sort().map((id) => ({ id, code: 'SERVICE_ERROR', attempts }));
    expect((await db.execute(waiting)).rows).toEqual(expected(1));
    expect(await outcomes(under)).toEqual({ applied: 1, pending: 2 });
    const later = async () => {
      await db.execute(
        sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
      );
      await catchUp(under);
    };
    await later();
    expect((await db.execute(waiting)).rows).toEqual(expected(2));
    service.lie = () => undefined;
    await later();
    expect(await outcomes(under)).toEqual({ applied: 3 });
    expect(await liveUsage(under)).toEqual(idsOf(service.usage));
  });

  test('only a refused document waits, even if it is the first, while a refused company waits as one owner', async () => {
    const service = new Service();
    const [refused, listed, fine] = [service.add(1), service.add(1), service.add(1)];
    const refusal: Reply = { status: 403, json: {} };
    service.lie = ({ path }) =>
      path.endsWith(`/document/${refused}`) || path.endsWith(`/v2.2/document/${listed}`)
        ? refusal
        : undefined;
    service.documents = service.documents.filter(({ id }) => id !== refused);
    const under = await caughtUp(service, [refused]);
    const waiting = async () => {
      const { rows } = await under.warehouse.db.execute(sql`select record_id as id, error_code as code
        from metersync.events where outcome = 'pending' order by record_id`);
      return rows;
    };
    const alone = [{ id: refused, code: 'SERVICE_RECORD_REFUSED' }];
    expect(await waiting()).toEqual(alone);
    await recordEvents(under.warehouse.db, [service.correct(listed), service.correct(fine)]);
    await catchUp(under);
    expect(await waiting()).toEqual(alone);
    expect(await outcomes(under)).toEqual({ applied: 2, pending: 1 });

    service.lie = () => refusal;
    // Otherwise, on a slow machine, the document would be due again by now and be refused with the company.
    await under.warehouse.db.execute(
      sql`update metersync.journal set due_at = due_at + '1 hour' where outcome = 'pending'`,
    );
    await recordEvents(under.warehouse.db, [service.correct(fine)]);
    await catchUp(under);
    const denied = [refused, fine].map((id) => ({ id, code: 'SERVICE_ACCESS_DENIED' }));
    expect(await waiting()).toEqual(denied.sort(byId));
  });

  test.each<[string, Partial<EndpointCatalogue>]>([
    ['of the document', {}],
    ['of the company', { documentUsage: null }],
  ])(
    'a document that moved to another company gets its usage from a listing %s, and the meters of that company',
    async (_, endpoints) => {
      const there = { ...company, id: randomUUID() };
      const id = randomUUID();
      const document = { id, created, updated, company: there.id };
      const [meter, row] = [{ id: randomUUID() }, { id: randomUUID(), document: { id } }];
      const usage = { ...row, meter: meter.id };
      const under = await activitiesOn((asked) => {
        const [, , resource, scope, owner] = asked.path.split('/');
        if (asked.path === '/v2.2/company') return { json: [company, there] };
        const ifThere = (records: readonly unknown[]) =>
          scope === 'company' && owner !== there.id ? [] : records;
        if (resource === 'meter') return pageOf(ifThere([meter]), asked, shapeOf('meters'));
        if (resource === 'usage') return pageOf(ifThere([usage]), asked, shapeOf('usageData'));
        return scope === 'company' ? pageOf(ifThere([document]), asked) : { json: document };
      }, endpoints);
      const { db } = under.warehouse;
      const before = delivery(documentEvent('created', id, created));
      await recordEvents(db, [before, delivery(documentEvent('updated', id, updated, { company: there }))]);
      for (const owner of [company.id, there.id]) {
        await under.run(under.activities.sweepOwners, { owners: queues('documents', [owner]) });
      }
      const held = await db.execute(sql`
      select u.id, u.company_id, m.id as meter_id from utility.usage_data u join utility.meters m on m.id = u.meter_id
      where u.deleted_at is null and m.company_id = u.company_id`);
      expect(held.rows).toEqual([{ id: row.id, company_id: there.id, meter_id: meter.id }]);
      expect(await outcomes(under)).toEqual({ applied: 2 });
    },
  );

  test('finds no usage of a document that is deleted meanwhile, and does not count the endpoint as missing', async () => {
    const service = new Service();
    const [kept, gone] = [service.add(2), service.add(2)];
    service.onDocument = (id) => {
      if (id === gone) service.remove(gone);
    };
    const under = await caughtUp(service, [kept, gone]);
    expect(await liveUsage(under)).toEqual(idsOf(service.usage));
    expect(under.asked().filter((path) => path.startsWith('/usage/company'))).toEqual([]);

    const alone = service.add(1);
    service.onDocument = (id) => service.remove(id);
    await recordEvents(under.warehouse.db, [delivery(documentEvent('updated', alone, updated))]);
    await catchUp(under);
    expect((await under.warehouse.db.execute(sql`select scope from metersync.gates`)).rows).toEqual([]);
  });

  test('does not count the endpoint of usage as missing if a document is deleted whose record lists its usage', async () => {
    const service = new Service();
    const id = service.add(2);
    const usageData = service.usage.map((row) => ({ id: row.id }));
    service.documents = service.documents.map((document) => ({ ...document, usageData }));
    const under = await caughtUp(service, [id]);
    expect(await liveUsage(under)).toHaveLength(2);
    service.onDocument = (one) => service.remove(one);
    await recordEvents(under.warehouse.db, [delivery(documentEvent('updated', id, updated))]);
    await under.warehouse.db.execute(
      sql`update metersync.journal set outcome = 'pending', queue = ${`document/${company.id}`}, due_at = clock_timestamp()`,
    );
    await catchUp(under);
    expect((await under.warehouse.db.execute(sql`select scope from metersync.gates`)).rows).toEqual([]);
  });

  test.each<[string, Partial<EndpointCatalogue>, (id: string) => string]>([
    ['by itself', {}, (id) => id],
    ['listed, in capitals', withoutSingle, (id) => id.toUpperCase()],
  ])(
    'a record (%s) that Postgres refuses makes its event dead with the reason, and other events are applied',
    async (_, endpoints, spelled) => {
      const service = new Service();
      const [refused, good] = [service.add(1), service.add(1)];
      // Too long for the index by which people search for bills.
      const invoiceId = Array.from({ length: 200 }, () => randomUUID()).join('');
      service.documents = service.documents.map((one) => ({
        ...one,
        id: spelled(one.id),
        ...(one.id === refused ? { invoiceId } : {}),
      }));
      const under = await caughtUp(service, [refused, good], endpoints);
      const { rows } = await under.warehouse.db.execute(sql`
      select record_id, outcome, error_code, x.error = e.error and strpos(x.record, ${invoiceId}) > 0 as kept
      from metersync.events e left join metersync.rejected_records x using (record_id) order by outcome`);
      expect(rows).toEqual([
        { record_id: good, outcome: 'applied', error_code: null, kept: null },
        { record_id: refused, outcome: 'dead', error_code: 'WAREHOUSE_VALUE_REFUSED', kept: true },
      ]);
    },
  );

  test.each([{}, withoutSingle])('tombstones usage that a correction removed (%j)', async (endpoints) => {
    const service = new Service();
    const [id, other] = [service.add(3), service.add(1)];
    const under = await caughtUp(service, [id, other], endpoints);
    service.usage.shift();
    await recordEvents(under.warehouse.db, [service.correct(id)]);
    await catchUp(under);
    expect(await liveUsage(under)).toEqual(idsOf(service.usage));
    expect(await outcomes(under)).toEqual({ applied: 3 });
  });
});

describe('documents that events deleted', () => {
  const removed = (service: Service, ids: readonly string[]) => {
    for (const id of ids) service.remove(id);
    return ids.map((id) => delivery(documentEvent('deleted', id, '2026-05-02T00:00:00')));
  };

  test('are requested by their ids, and no listing is read', async () => {
    const service = new Service();
    const ids = Array.from({ length: 3 }, () => service.add(1));
    const under = await caughtUp(service, ids);
    await recordEvents(under.warehouse.db, removed(service, ids));
    const asked = under.asked().length;
    await catchUp(under);
    expect(under.asked().slice(asked).sort()).toEqual(ids.map((id) => `/document/${id}`).sort());
    expect(await outcomes(under)).toEqual({ applied: 6 });
  });

  test('are settled by one pass over the listing if very many are due', async () => {
    const service = new Service();
    const ids = Array.from({ length: batches.documents + 10 }, () => service.add(0));
    service.add(0);
    const under = await caughtUp(service, ids.slice(0, 1));
    await recordEvents(under.warehouse.db, removed(service, ids));
    const asked = under.asked().length;
    await under.run(under.activities.sweepOwners, {
      owners: queues('documents', [company.id]),
      walks: true,
    });
    expect(under.asked().length - asked).toBeLessThan(10);
    expect(await outcomes(under)).toEqual({ applied: ids.length + 1 });
  });

  test('are not searched for in the listing of a service that has nothing else', async () => {
    const service = new Service(['document', 'documentUsage']);
    const under = await activitiesOn(service.answer, withoutSingle);
    const id = service.add(1);
    await recordEvents(under.warehouse.db, [service.correct(id)]);
    await catchUp(under);
    await recordEvents(under.warehouse.db, removed(service, [id]));
    const asked = under.asked().length;
    await catchUp(under);
    expect(under.asked()).toHaveLength(asked);
    expect(await outcomes(under)).toEqual({ applied: 2 });
  });
});

test('documents with events are not tombstoned while the service shows no document at all', async () => {
  const service = new Service();
  const ids = Array.from({ length: 20 }, () => service.add(1));
  const under = await caughtUp(service, ids);
  const { db } = under.warehouse;
  await recordEvents(
    db,
    ids.map((id) => service.correct(id)),
  );
  service.documents = [];
  for (let attempt = 0; attempt <= recordPolicy.olderStateAttemptsMax; attempt++) {
    await db.execute(sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`);
    await catchUp(under);
  }
  const live = await db.execute(sql`select from utility.documents where deleted_at is null`);
  expect(live.rowCount).toBe(ids.length);
  expect(await outcomes(under)).toEqual({ applied: 20, missing: 20 });
});

test('a backfill proves a deletion that no event reported, and the events of the record are settled at once', async () => {
  const service = new Service();
  const [kept, gone, never] = [service.add(1), service.add(1), randomUUID()];
  const under = await caughtUp(service, [kept, gone], { connections: null, intervals: null });
  const { db } = under.warehouse;
  const unseen = documentEvent('created', never, updated);
  await recordEvents(db, [service.correct(gone), service.correct(kept), delivery(unseen)]);
  service.remove(gone);
  await catchUp(under);
  expect(await outcomes(under)).toEqual({ applied: 3, pending: 2 });
  const before = under.sweeps();
  await under.run(under.activities.readCompany, { runId: randomUUID(), companyId: company.id });
  expect(under.sweeps()).toBe(before + 1);
  await catchUp(under);
  expect(await outcomes(under)).toEqual({ applied: 3, superseded: 2 });
  const live = await db.execute(sql`select id from utility.documents where deleted_at is null`);
  expect(live.rows).toEqual([{ id: kept }]);
  expect(await liveUsage(under)).toEqual(idsOf(service.usage));
});

describe('a service that answers 404 for the usage of documents without usage', () => {
  const pathsAsked = ({ asked }: ActivitiesUnderTest, path: string) =>
    asked().filter((request) => request.startsWith(path)).length;
  const serviceOf404 = () => {
    const service = new Service();
    service.lie = ({ path }) => {
      const [, , resource, scope, id] = path.split('/');
      const hasNone = !service.usage.some(({ document }) => document.id === id);
      return resource === 'usage' && scope === 'document' && hasNone ? notThere : undefined;
    };
    return service;
  };

  test('leads to settled events, and its endpoint does not count as missing', async () => {
    const service = serviceOf404();
    const under = await caughtUp(service, [service.add(0), service.add(0)]);
    expect(await outcomes(under)).toEqual({ applied: 2 });
    const [withUsage, without] = [service.add(2), service.add(0)];
    await recordEvents(under.warehouse.db, [service.correct(withUsage), service.correct(without)]);
    await catchUp(under);
    expect(await outcomes(under)).toEqual({ applied: 4 });
    expect(await liveUsage(under)).toEqual(idsOf(service.usage));
    // Only after the first answers it was unknown whether the endpoint exists.
    expect(pathsAsked(under, '/usage/company')).toBe(1);
  });

  test('leads to tombstoned usage only if the listing of the company lacks the usage too', async () => {
    const service = serviceOf404();
    const [id, other] = [service.add(2), service.add(2)];
    const under = await caughtUp(service, [id, other]);
    service.usage = service.usage.filter(({ document }) => document.id === other);
    await recordEvents(under.warehouse.db, [service.correct(id)]);
    await catchUp(under);
    expect(await outcomes(under)).toEqual({ applied: 3 });
    expect(await liveUsage(under)).toEqual(idsOf(service.usage));
  });
});

describe('an incomplete answer about usage', () => {
  const listed = (rows: readonly Usage[], total: number, asked: Asked): Reply => {
    const reply = pageOf(rows, asked, shapeOf('usageData')) as { json: object };
    return { json: { ...reply.json, totalUsageData: total } };
  };
  type Lie = (service: Service, id: string, asked: Asked) => Reply | undefined;
  const ofDocument: Lie[] = [
    // The answer has fewer rows than its total.
    ({ usage }, id, asked) =>
      asked.path.endsWith(`/usage/document/${id}`)
        ? listed(usage.filter(({ document }) => document.id === id).slice(0, 1), 3, asked)
        : undefined,
  ];
  const ofCompany: Lie[] = [
    (_, __, asked) => (asked.path.includes('/usage/company') ? listed([], 6, asked) : undefined),
    // The answer is consistent, but a fault of the service is more likely than a deletion of all usage.
    (_, __, asked) => (asked.path.includes('/usage/company') ? listed([], 0, asked) : undefined),
  ];

  test.each([
    ['of a document', {}, ofDocument],
    ['of the company', withoutSingle, ofCompany],
  ] as const)(
    'tombstones nothing, and the events wait for a complete answer: %s',
    async (_, endpoints, lies) => {
      const service = new Service();
      const [doubtful, sound] = [service.add(4), service.add(3)];
      const under = await caughtUp(service, [doubtful, sound], endpoints);
      let applied = 2;
      for (const lie of lies) {
        service.lie = (asked) => lie(service, doubtful, asked);
        await recordEvents(under.warehouse.db, [service.correct(doubtful)]);
        await catchUp(under);
        expect(await liveUsage(under)).toEqual(idsOf(service.usage));
        expect(await outcomes(under)).toEqual({ applied, pending: 1 });
        const codes = sql`select error_code from metersync.events where outcome = 'pending'`;
        expect((await under.warehouse.db.execute(codes)).rows).toEqual([{ error_code: 'LISTING_UNSTABLE' }]);

        service.lie = () => undefined;
        service.usage.shift();
        await under.warehouse.db.execute(
          sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
        );
        await catchUp(under);
        applied += 1;
        expect(await liveUsage(under)).toEqual(idsOf(service.usage));
        expect(await outcomes(under)).toEqual({ applied });
      }
    },
  );

  test('makes the events missing if it lasts, and later changes nothing even if it is consistent', async () => {
    const service = new Service();
    const id = service.add(3);
    const under = await caughtUp(service, [id], withoutSingle);
    const ofUsage = (asked: Asked) => asked.path.includes('/usage/company');
    service.lie = (asked) => (ofUsage(asked) ? listed([], 6, asked) : undefined);
    await recordEvents(under.warehouse.db, [service.correct(id), service.correct(id)]);
    await catchUp(under);
    expect(await outcomes(under)).toEqual({ applied: 1, pending: 2 });
    await under.warehouse.db.execute(sql`update metersync.journal
      set due_at = clock_timestamp(), attempts = ${recordPolicy.olderStateAttemptsMax}::int
      where outcome = 'pending'`);
    await catchUp(under);
    expect(await outcomes(under)).toEqual({ applied: 1, missing: 2 });
    expect(await liveUsage(under)).toEqual(idsOf(service.usage));

    let answers = 0;
    service.lie = (asked) => (ofUsage(asked) && answers++ === 0 ? listed([], 0, asked) : undefined);
    await recordEvents(under.warehouse.db, [service.correct(id)]);
    await catchUp(under);
    expect(await liveUsage(under)).toEqual(idsOf(service.usage));
    expect(await outcomes(under)).toEqual({ applied: 4 });
  });
});

test.each([
  ['a document', {}],
  ['the company', withoutSingle],
])('a row that the listing of %s lacks in one pass and has in the next is kept', async (_, endpoints) => {
  const service = new Service();
  const id = service.add(120);
  const under = await caughtUp(service, [id], endpoints);
  let passes = 0;
  service.lie = (asked) => {
    if (!asked.path.includes('/usage/')) return undefined;
    if (asked.query.get('page') === '1') passes += 1;
    return passes === 1 ? pageOf(service.usage.slice(1), asked, shapeOf('usageData')) : undefined;
  };
  await recordEvents(under.warehouse.db, [service.correct(id)]);
  await catchUp(under);
  expect(passes).toBe(2);
  expect(await liveUsage(under)).toEqual(idsOf(service.usage));
  expect(await outcomes(under)).toEqual({ applied: 2 });
});

describe('usage read from the listing of the company', () => {
  test('contains a row in the next pass if a deletion and an insertion hid it from the first', async () => {
    const service = new Service();
    const [first] = Array.from({ length: 120 }, () => service.add(1));
    const all = service.documents.map(({ id }) => id);
    service.onUsagePage = (page) => {
      // Row 101 moves to the page that was already read, and the total does not change.
      if (page !== 1 || !service.documents.some(({ id }) => id === first)) return;
      service.remove(first ?? '');
      service.usage.push({ id: randomUUID(), document: { id: all[1] ?? '' } });
    };
    const under = await caughtUp(service, all.slice(1), withoutSingle);
    expect(await liveUsage(under)).toEqual(expect.arrayContaining(idsOf(service.usage)));
    expect(await outcomes(under)).toEqual({ applied: 119 });
  });

  test('settles and tombstones nothing while every pass finds changes', async () => {
    const service = new Service();
    for (let count = 0; count < 120; count++) service.add(1);
    const all = service.documents.map(({ id }) => id);
    service.onUsagePage = (page) => {
      if (page === 1)
        service.usage = [...service.usage.slice(1), { id: randomUUID(), document: { id: all[0] ?? '' } }];
    };
    const under = await caughtUp(service, all, withoutSingle);
    expect(await outcomes(under)).toEqual({ pending: 120 });
    const retired = await under.warehouse.db.execute(
      sql`select from utility.usage_data where deleted_at is not null`,
    );
    expect(retired.rowCount).toBe(0);
    service.onUsagePage = () => {};
    await under.warehouse.db.execute(
      sql`update metersync.journal set due_at = clock_timestamp() where outcome = 'pending'`,
    );
    await catchUp(under);
    expect(await liveUsage(under)).toEqual(idsOf(service.usage));
    expect(await outcomes(under)).toEqual({ applied: 120 });
  });
});

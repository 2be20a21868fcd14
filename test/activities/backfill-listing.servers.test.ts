import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { defaultEndpoints } from '../../contract/endpoints.ts';
import { requestPolicy } from '../../contract/retry-policy.ts';
import { approveDeletes, readDeletes, undoDeletes } from '../../db/deletes/decide.ts';
import { recordEvents } from '../../db/events/record.ts';
import { audit, repair } from '../../operations/audit/audit.ts';
import { pageOf } from '../service/listing.ts';
import type { Reply, Script } from '../service/scripted-server.ts';
import { setup } from '../service/setup.ts';
import { type ActivitiesUnderTest, activitiesOn, queues } from '../support/activities.ts';
import { backfill } from '../support/billing.ts';
import { company, delivery, documentEvent } from '../support/events.ts';
import { documents } from '../support/scripted-service.ts';

const companyId = randomUUID();
const input = () => ({ runId: randomUUID(), companyId });
const documentsAlone = { connections: null, meters: null, usageData: null, intervals: null };
const cursorOf = (page: number) => ({
  resource: 'documents',
  companyId,
  pass: 1,
  page,
  written: { inserted: page * 100, changed: 0, rejected: 0 },
});
const pagesAsked = ({ asked }: ActivitiesUnderTest) =>
  asked()
    .filter((path) => path.startsWith('/document/'))
    .map((path) => Number(new URLSearchParams(path.split('?')[1]).get('page')));
const alive = async ({ warehouse }: ActivitiesUnderTest) =>
  (await warehouse.db.execute(sql`select from utility.documents where deleted_at is null`)).rowCount;
const manifestPages = async ({ warehouse }: ActivitiesUnderTest) =>
  (await warehouse.db.execute(sql`select from metersync.pages`)).rowCount;

/** Answers from the listing, except that all attempts of the client to send the given request fail. */
function failingOnce(held: readonly object[], at: number) {
  let number = 0;
  const trouble: Reply = { status: 500, json: { detail: 'not now' } };
  return (asked: Parameters<typeof pageOf>[1]): Reply => {
    number += 1;
    return number >= at && number < at + requestPolicy.attemptsMax ? trouble : pageOf(held, asked);
  };
}

describe('an interrupted backfill of a listing', () => {
  test('resumes after the last written page, and judges the complete pass', async () => {
    const held = documents(350);
    const under = await activitiesOn(failingOnce(held, 3), documentsAlone);
    const run = input();
    const first = under.run(under.activities.readCompany, run);
    await expect(first).rejects.toMatchObject({ type: 'SERVICE_ERROR', nonRetryable: false });
    expect([await alive(under), await manifestPages(under)]).toEqual([200, 2]);

    const cursor = cursorOf(2);
    await under.run(under.activities.readCompany, run, cursor);
    expect(pagesAsked(under)).toEqual([1, 2, 3, 3, 3, 3, 3, 4]);
    expect([await alive(under), await manifestPages(under)]).toEqual([350, 0]);
  });

  test('keeps its manifest until the end of its run deletes the manifest', async () => {
    const refused = (asked: Parameters<typeof pageOf>[1]): Reply =>
      asked.query.get('page') === '3' ? { status: 403, json: {} } : pageOf(documents(350), asked);
    const under = await activitiesOn(refused, documentsAlone);
    const { activities, run } = under;
    const { runId } = input();
    await under.warehouse.db.execute(
      sql`insert into metersync.runs (run_id, state) values (${runId}, 'running')`,
    );
    await run(activities.readCompany, { ...input(), runId });
    expect(await manifestPages(under)).toBe(2);
    await run(activities.concludeRun, { runId });
    expect(await manifestPages(under)).toBe(0);
  });

  test('reads no more pages if the last page was written', async () => {
    const held = documents(150);
    const under = await activitiesOn((asked) => pageOf(held, asked), documentsAlone);
    const run = input();
    await under.run(under.activities.readCompany, run);
    // This is the state that a killed attempt leaves: the part is not finished and its manifest exists.
    await under.warehouse.db.execute(
      sql`update metersync.runs set finished_at = null where resource = 'documents'`,
    );
    await under.warehouse.db.execute(sql`
      insert into metersync.pages (run_id, company_id, resource, pass, asked, current_page, total, has_next, ids, read_at)
      select ${run.runId}::uuid, ${companyId}::uuid, 'documents', 1, page, page, 150, page = 1, ids, now()
      from (values (1, ${sql.param(held.slice(0, 100).map(({ id }) => id))}::text[]),
        (2, ${sql.param(held.slice(100).map(({ id }) => id))}::text[])) as t (page, ids)`);
    const cursor = cursorOf(2);
    await under.run(under.activities.readCompany, run, cursor);
    expect(pagesAsked(under)).toEqual([1, 2]);
  });

  test('reads the pass again if a crash of Postgres lost its manifest', async () => {
    const held = documents(250);
    const under = await activitiesOn((asked) => pageOf(held, asked), documentsAlone);
    const cursor = cursorOf(1);
    await under.run(under.activities.readCompany, input(), cursor);
    expect(pagesAsked(under)).toEqual([2, 3, 1, 2, 3]);
    expect(await alive(under)).toBe(250);
  });
});

test.each([
  ['without an event', false],
  ['after an event', true],
])(
  'takes usage and its corrections from documents if there is no usage endpoint (%s)',
  async (_, announced) => {
    const id = randomUUID();
    const states = ['1', '2'].map((usage) => ({
      id,
      created: '2026-05-01T00:00:00.000001',
      updated: `2026-05-0${usage}T00:00:00.000001`,
      usageData: [{ id: randomUUID(), usage }],
    }));
    let current = states[0];
    const endpoints = { ...documentsAlone, companies: null, documentUsage: null };
    const under = await activitiesOn(
      ({ path, query }) =>
        path.includes('/company/') ? pageOf([current], { query }) : { json: current as object },
      endpoints,
    );
    const { db } = under.warehouse;
    const usage = async () => {
      const live = await db.execute(
        sql`select document_id, usage from utility.usage_data where deleted_at is null`,
      );
      return live.rows;
    };
    if (announced) await recordEvents(db, [delivery(documentEvent('created', id, states[0]?.updated ?? ''))]);
    await under.run(under.activities.readCompany, { ...input(), companyId: company.id });
    await under.run(under.activities.sweepOwners, { owners: queues('documents', [company.id]) });
    expect(await usage()).toEqual([{ document_id: id, usage: '1' }]);
    const waiting = await db.execute(sql`select from metersync.events where outcome <> 'applied'`);
    expect(waiting.rows).toEqual([]);
    current = states[1];
    await under.run(under.activities.readCompany, { ...input(), companyId: company.id });
    expect(await usage()).toEqual([{ document_id: id, usage: '2' }]);
  },
);

test.each([
  ['documents', documentsAlone, 'totalDocuments', 3],
  [
    'usageData',
    { ...documentsAlone, documents: null, usageData: defaultEndpoints.usageData },
    'totalUsageData',
    2,
  ],
] as const)(
  'follows a service that went back to older states of %s, except states that a recent read may contradict',
  async (resource, endpoints, total, differences) => {
    const table = resource === 'documents' ? sql`utility.documents` : sql`utility.usage_data`;
    const at = (second: number) => `2026-05-01T00:00:0${second}.000001`;
    const records = documents(4);
    const states = (updated: readonly string[]) =>
      records.map(({ id }, place) => ({ id, updated: updated[place] as string }));
    let held = states([at(2), at(2), at(1), at(2)]);
    const under = await activitiesOn((asked) => pageOf(held, asked, { key: resource, total }), endpoints);
    const { db } = under.warehouse;
    const part = async () => {
      const { runId } = input();
      await under.run(under.activities.readCompany, { runId, companyId: company.id });
      const { rows } = await db.execute(
        sql`select state, error from metersync.runs where run_id = ${runId}::uuid and resource = ${resource}`,
      );
      return rows[0];
    };
    const read = async () => {
      const { rows } = await db.execute(sql`select raw ->> 'updated' as updated from ${table} order by id`);
      return rows.map(({ updated }) => updated);
    };
    const complete = { state: 'complete', error: null };
    expect(await part()).toEqual(complete);
    const [, , third] = held;
    // An event announces a state of the third record that the service does not show.
    if (resource === 'documents')
      await recordEvents(db, [delivery(documentEvent('updated', third?.id ?? '', at(3)))]);
    held = states([at(1), at(1), at(2), at(2)]);
    expect(await part()).toEqual({ state: 'complete', error: '2 records went back to an older state' });
    const byId = held.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map(({ updated }) => updated);
    expect(await read()).toEqual(resource === 'documents' ? expect.arrayContaining([at(1), at(2)]) : byId);

    // The service updated two records a minute ago, and a listing of ten minutes later lags behind that.
    const recently = new Date(Date.now() - 60_000).toISOString().replace('Z', '');
    held = states([recently, recently, at(2), at(2)]);
    expect(await part()).toEqual(complete);
    await db.execute(sql`update ${table} set synced_at = synced_at - interval '10 minutes'`);
    held = states([at(1), at(1), at(2), at(2)]);
    expect(await part()).toEqual({
      state: 'suspect',
      error: '2 records came in an older state than a recent read: the next backfill decides',
    });
    expect((await read()).filter((updated) => updated === recently)).toHaveLength(2);
    const { client: service } = await setup((asked) => pageOf(held, asked, { key: resource, total }));
    const sides = { warehouse: under.warehouse, service, apiVersion: 'v2.2', concurrency: 1 };
    expect(await repair({ ...sides, companyId: company.id, resources: [resource] })).toMatchObject({
      differences,
    });
    expect(await part()).toEqual(complete);
  },
);

describe('a resource that the service refuses', () => {
  test('fails while the other resources are complete, and is not read again by the same run', async () => {
    const held = documents(50);
    const under = await activitiesOn(
      (asked) => (asked.path.includes('/document/') ? pageOf(held, asked) : { status: 403, json: {} }),
      { ...documentsAlone, meters: defaultEndpoints.meters },
    );
    const run = input();
    await under.run(under.activities.readCompany, run);
    const asked = under.asked().length;
    await under.run(under.activities.readCompany, run);
    expect(under.asked()).toHaveLength(asked);
    const states = await under.warehouse.db.execute(sql`
      select resource, state from metersync.runs where resource in ('meters', 'documents') order by resource`);
    expect(states.rows).toEqual([
      { resource: 'documents', state: 'complete' },
      { resource: 'meters', state: 'failed' },
    ]);
  });
});

test('the endpoints of a service that lacks nearly all endpoints are read, and the others are reported as absent', async () => {
  const held = documents(3);
  const others = { usageData: null, document: null, documentUsage: null, companies: null };
  const under = await activitiesOn(
    (asked) => pageOf(held, asked),
    { ...documentsAlone, ...others },
    {
      companies: [companyId],
    },
  );
  expect(await backfill(under, [companyId])).toMatchObject({ state: 'complete' });
  const runs = await under.warehouse.db.execute(sql`
    select resource, state, rows_inserted::int as inserted, error from metersync.runs
    where resource is not null order by resource`);
  const none = { state: 'complete', inserted: 0, error: expect.stringContaining('no such endpoint') };
  expect(runs.rows).toEqual([
    { ...none, resource: 'companies' },
    { ...none, resource: 'connections' },
    { resource: 'documents', state: 'complete', inserted: 3, error: null },
    { ...none, resource: 'intervals', error: null },
    { ...none, resource: 'meters' },
    { ...none, resource: 'usageData' },
  ]);
});

describe('sites that their company records no longer name', () => {
  const sites = Array.from({ length: 80 }, () => ({ id: randomUUID() }));
  const shape = { key: 'companies', total: 'totalCompanies' };

  /** Backfills a list of one company. Each pass finds the next of the given lists of sites. */
  async function listOfCompanies() {
    let passes: (readonly object[])[] = [];
    let lies = {};
    const under = await activitiesOn((asked) => {
      const listed = passes.length > 1 ? passes.shift() : passes[0];
      const { json } = pageOf([{ id: companyId, sites: listed }], asked, shape) as { json: object };
      return { json: { ...json, ...lies } };
    }, documentsAlone);
    const { db } = under.warehouse;
    const backfill = async (listed: (readonly object[])[], envelope = {}) => {
      [passes, lies] = [listed, envelope];
      const runId = randomUUID();
      const before = under.asked().length;
      await under.run(under.activities.beginRun, { runId, kind: 'full' });
      const [run] = (
        await db.execute(sql`select state, rows_tombstoned::int as tombstoned from metersync.runs
          where run_id = ${runId}::uuid and resource = 'companies'`)
      ).rows;
      const live = (await db.execute(sql`select from utility.sites where deleted_at is null`)).rowCount;
      const undecided = (await readDeletes(db, { all: false })).map(({ rows }) => rows);
      return { runId, ...run, live, undecided, requests: under.asked().length - before };
    };
    expect(await backfill([sites])).toMatchObject({
      state: 'complete',
      live: 80,
      undecided: [],
      requests: 1,
    });
    return { db, backfill };
  }

  test('are tombstoned when two stable passes agree, and this can be undone', async () => {
    const { db, backfill } = await listOfCompanies();
    const unstable = await backfill([sites.slice(1)], { totalCompanies: 7 });
    expect(unstable).toMatchObject({ state: 'suspect', live: 80, tombstoned: 0, undecided: [] });
    await backfill([sites]);
    expect(await backfill([sites.slice(1), sites])).toMatchObject({
      state: 'complete',
      live: 80,
      requests: 2,
    });
    const gone = await backfill([sites.slice(1)]);
    expect(gone).toMatchObject({ state: 'complete', live: 79, tombstoned: 1, undecided: [], requests: 2 });
    expect(await undoDeletes(db, gone.runId)).toMatchObject({ revived: 1 });
    const kept = await backfill([sites.slice(1)]);
    // A decision to keep the site leaves nothing that another pass would have to confirm.
    expect(kept).toMatchObject({ state: 'complete', live: 80, tombstoned: 0, undecided: [], requests: 1 });
    expect(await backfill([sites])).toMatchObject({ state: 'complete', live: 80, undecided: [] });
    // The record named the site again, and that ended the decision.
    const again = await backfill([sites.slice(1)]);
    expect(again).toMatchObject({ state: 'complete', live: 79, tombstoned: 1 });
  });

  test('are tombstoned and revived with their company, without a difference in an audit', async () => {
    const held = [2, 3].map((count) => ({
      id: randomUUID(),
      sites: sites.slice(-count).map(() => ({ id: randomUUID() })),
    }));
    let listed = held;
    const script: Script = (asked) => pageOf(listed, asked, shape);
    const under = await activitiesOn(script, documentsAlone);
    const { warehouse } = under;
    const { client: service } = await setup(script);
    const backfill = async (companies: typeof held) => {
      listed = companies;
      const runId = randomUUID();
      await under.run(under.activities.beginRun, { runId, kind: 'full' });
      const { rows } =
        await warehouse.db.execute(sql`select state, (select count(*)::int from utility.sites where deleted_at is null) as live
        from metersync.runs where run_id = ${runId}::uuid and resource = 'companies'`);
      const resources = ['companies', 'sites'] as const;
      const { differences } = await audit({ warehouse, service, concurrency: 1, resources });
      return { runId, ...rows[0], differences };
    };
    expect(await backfill(held)).toMatchObject({ state: 'complete', live: 5, differences: 0 });
    const gone = await backfill(held.slice(1));
    expect(gone).toMatchObject({ state: 'complete', live: 3, differences: 0 });
    expect(await backfill(held)).toMatchObject({ state: 'complete', live: 5, differences: 0 });
    const again = await backfill(held.slice(1));
    expect(again).toMatchObject({ state: 'complete', live: 3, differences: 0 });
    expect(await undoDeletes(warehouse.db, again.runId)).toMatchObject({ revived: 3 });
    expect(await backfill(held.slice(1))).toMatchObject({ state: 'complete', live: 5, differences: 0 });
  });

  test('are quarantined above the cap, or when no site is left', async () => {
    const { db, backfill } = await listOfCompanies();
    const most = await backfill([sites.slice(70)]);
    expect(most).toMatchObject({ state: 'suspect', live: 80, tombstoned: 0, undecided: [70] });
    expect(await approveDeletes(db, most.runId)).toEqual({ tombstoned: 70, spared: 0 });
    expect(await backfill([[]])).toMatchObject({ state: 'suspect', live: 10, undecided: [10] });
  });
});

import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { approveDeletes, readDeletes, rejectDeletes, undoDeletes } from '../../db/deletes/decide.ts';
import { sumDeletedRows } from '../../db/deletes/list-rows.ts';
import { describeSum } from '../../operations/decisions.ts';
import { pageOf } from '../service/listing.ts';
import type { Asked, Reply } from '../service/scripted-server.ts';
import { type ActivitiesUnderTest, activitiesOn } from '../support/activities.ts';
import { writeRecords } from '../support/pages.ts';
import { documents } from '../support/scripted-service.ts';

const companyId = randomUUID();
const input = () => ({ runId: randomUUID(), companyId, resources: ['documents'] as const });
const old = (count: number) => documents(count);
const recent = (count: number) =>
  documents(count).map((document) => ({ ...document, updated: new Date().toISOString() }));

/** Makes a service that has the filter and lists the given live and deleted records. */
function filtering(live: () => readonly object[], deleted: () => readonly object[] = () => []) {
  return (asked: Asked): Reply => {
    const { query } = asked;
    const held = query.get('isDeleted') === 'true' ? deleted() : live();
    const since = query.get('startDate');
    expect(query.get('dateType')).toBe(since === null ? null : 'UPDATED_DATE');
    return pageOf(
      held.filter((record) => since === null || (record as { updated: string }).updated >= since),
      asked,
    );
  };
}

const run = async ({ warehouse }: ActivitiesUnderTest) =>
  (
    await warehouse.db.execute<Record<string, unknown>>(sql`select resource, kind, state, error,
      rows_inserted::int as inserted, rows_tombstoned::int as tombstoned, requests
      from metersync.runs where resource is not null order by started_at desc limit 1`)
  ).rows[0];
const states = async ({ warehouse }: ActivitiesUnderTest) =>
  (
    await warehouse.db.execute<{ id: string; deleted_reason: string | null }>(
      sql`select id, deleted_reason from utility.documents order by id`,
    )
  ).rows;
const reconcile = async (under: ActivitiesUnderTest) =>
  await under.run(under.activities.reconcileCompany, input());

describe('a reconcile of recent updates', () => {
  test('reads only updates since the UTC day two days ago', async () => {
    const [fresh, stale] = [recent(120), old(300)];
    const under = await activitiesOn(filtering(() => [...stale, ...fresh]));
    const twoDaysAgo = () => new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10);
    const before = twoDaysAgo();
    expect(await reconcile(under)).toEqual({ unsupportedFilters: [] });
    const [, since] = /startDate=([\d-]+)/.exec(under.asked()[0] ?? '') ?? [];
    expect([before, twoDaysAgo()]).toContain(since);
    const filter = `dateType=UPDATED_DATE&startDate=${since}`;
    expect(under.asked()).toEqual([
      `/document/company/${companyId}?${filter}&isDeleted=true&page=1`,
      `/document/company/${companyId}?${filter}&page=1`,
      `/document/company/${companyId}?${filter}&page=2`,
    ]);
    expect(await run(under)).toEqual({
      resource: 'documents',
      kind: 'reconcile',
      state: 'complete',
      error: null,
      inserted: 120,
      tombstoned: 0,
      requests: 3,
    });
  });

  test('is suspect if a listing has fewer records than its total in three passes', async () => {
    const held = recent(2);
    const under = await activitiesOn((asked) => {
      const deleted = asked.query.has('isDeleted');
      const { json } = pageOf(deleted ? [] : held, asked) as { json: object };
      return { json: deleted ? json : { ...json, totalDocuments: 5 } };
    });
    await reconcile(under);
    expect(await run(under)).toMatchObject({
      state: 'suspect',
      inserted: 2,
      requests: 4,
      error: expect.stringMatching(/^not stable: 2 distinct records of a total of 5/),
    });
  });

  test('leaves listings of more than a hundred pages to the full backfill', async () => {
    const many = recent(10_001);
    const under = await activitiesOn(filtering(() => many));
    expect(await reconcile(under)).toEqual({ unsupportedFilters: [] });
    expect(await run(under)).toMatchObject({ state: 'partial', inserted: 0 });
    expect(under.asked().length).toBeLessThanOrEqual(2);
  });
});

describe('a service without the filter', () => {
  test('is recognized by old records and an unfiltered total, and nothing more is read', async () => {
    const held = old(250);
    const under = await activitiesOn((asked) => pageOf(held, asked));
    expect(await reconcile(under)).toEqual({ unsupportedFilters: ['documents'] });
    expect(await states(under)).toEqual([]);
    expect(under.asked()).toHaveLength(2);
    expect(await run(under)).toMatchObject({
      kind: 'reconcile',
      state: 'failed',
      error: expect.stringMatching(
        /^SERVICE_FILTER_IGNORED: .* reports 250 documents updated since \S+ and 250 in total/,
      ),
    });
  });

  test('may refuse the parameters, which ends the resource for this run', async () => {
    const under = await activitiesOn(({ query }) =>
      query.has('dateType') ? { status: 400, json: { detail: 'what?' } } : { json: [] },
    );
    expect(await reconcile(under)).toEqual({ unsupportedFilters: [] });
    expect(await run(under)).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/^SERVICE_REQUEST_REFUSED/),
    });
  });

  test('gets only one request if it refuses the key', async () => {
    const under = await activitiesOn(() => ({ status: 401, json: {} }));
    const all = { ...input(), resources: ['documents', 'usageData'] as const };
    expect(await under.run(under.activities.reconcileCompany, all)).toEqual({
      unsupportedFilters: ['documents', 'usageData'],
    });
    expect(under.asked()).toHaveLength(1);
  });

  test('gets no request if the endpoint catalogue says so', async () => {
    const path = '/document/company/{companyId}';
    const under = await activitiesOn(() => ({ json: [] }), { documents: { path } });
    expect(await reconcile(under)).toEqual({ unsupportedFilters: [] });
    expect(under.asked()).toEqual([]);
    expect(await run(under)).toMatchObject({
      state: 'complete',
      error: expect.stringMatching(/no filter for recent updates/),
    });
  });

  test('is not assumed if the filter uses another time than the `updated` of the records', async () => {
    const [filtered, rest] = [old(3), old(50)];
    const under = await activitiesOn((asked) =>
      pageOf(asked.query.has('startDate') ? filtered : [...filtered, ...rest], asked),
    );
    expect(await reconcile(under)).toEqual({ unsupportedFilters: [] });
    expect(await run(under)).toMatchObject({ state: 'complete', inserted: 3 });
  });
});

describe('deleted documents', () => {
  test.each([
    ['among live documents', true],
    ['alone', false],
  ])('are tombstoned if they are listed %s, and live documents are not', async (_, beside) => {
    const [live, gone] = [recent(150), recent(2)];
    let [listed, deleted]: object[][] = [[...live, ...gone], []];
    const under = await activitiesOn(
      filtering(
        () => listed as object[],
        () => [...(beside ? (listed as object[]) : []), ...(deleted as object[])],
      ),
    );
    await reconcile(under);
    [listed, deleted] = [live, gone];
    await reconcile(under);
    expect(await run(under)).toMatchObject({ state: 'complete', tombstoned: 2 });
    const tombstoned = (await states(under)).filter(({ deleted_reason }) => deleted_reason !== null);
    expect(tombstoned).toEqual(
      gone.map(({ id }) => ({ id, deleted_reason: 'listed' })).sort((a, b) => (a.id < b.id ? -1 : 1)),
    );
    // The deletion was a mistake, and the service lists the documents again.
    [listed, deleted] = [[...live, ...gone], []];
    await reconcile(under);
    expect((await states(under)).filter(({ deleted_reason }) => deleted_reason !== null)).toEqual([]);
  });

  test('are never inferred from absence, so records in no listing stay', async () => {
    const [live, gone] = [recent(5), recent(2)];
    let listed: object[] = [...live, ...gone];
    const under = await activitiesOn(
      filtering(
        () => listed,
        () => listed,
      ),
    );
    await reconcile(under);
    listed = live;
    await reconcile(under);
    expect(await run(under)).toMatchObject({ state: 'complete', tombstoned: 0 });
    expect((await states(under)).map(({ deleted_reason }) => deleted_reason)).toEqual(Array(7).fill(null));
  });

  test('are not tombstoned while the live listing changes, because it may hide a live document', async () => {
    const live = recent(150);
    let reads = 0;
    const hidden = () => {
      reads += 1;
      // Between the two reads, a record moves from the second page to the first, so no read sees it.
      return reads % 2 === 0 ? [live[120] as object, ...live.filter((_, at) => at !== 120)] : live;
    };
    const under = await activitiesOn(
      filtering(
        () => hidden(),
        () => live,
      ),
    );
    await reconcile(under);
    expect(await run(under)).toMatchObject({
      state: 'suspect',
      tombstoned: 0,
      error: expect.stringMatching(/moved/),
    });
  });

  test('are tombstoned once if a changing listing contains them twice', async () => {
    const [live, gone] = [recent(3), recent(2)];
    const [first, second] = gone.map(({ id, updated }) => ({ id: id.toUpperCase(), updated }));
    let listed = [...live, ...gone];
    const under = await activitiesOn(
      filtering(
        () => listed,
        () => [
          ...gone,
          { ...first, updated: new Date(Date.now() + 1_000).toISOString() },
          { ...second, updated: null },
        ],
      ),
    );
    await reconcile(under);
    listed = live;
    await reconcile(under);
    expect(await run(under)).toMatchObject({ state: 'complete', tombstoned: 2 });
    expect(await readDeletes(under.warehouse.db, { all: true })).toMatchObject([
      { state: 'applied', rows: 2 },
    ]);
  });

  test('stay above the cap until somebody decides, and an undo revives them with their usage', async () => {
    const all = recent(90);
    let listed = all;
    const under = await activitiesOn(
      filtering(
        () => listed,
        () => all,
      ),
    );
    const { warehouse } = under;
    const { db } = warehouse;
    await reconcile(under);
    const usage = all.map(({ id }) => ({ id: randomUUID(), document: { id } }));
    await writeRecords(warehouse, 'usageData', usage, { companyId });
    const live = async () => {
      const rows = await db.execute<{ live: number[] }>(sql`select array[
        (select count(*)::int from utility.documents where deleted_at is null),
        (select count(*)::int from utility.usage_data where deleted_at is null)] as live`);
      return rows.rows[0]?.live;
    };
    const noted = async () =>
      (await readDeletes(db, { all: true })).map(({ state, reason, rows }) => [state, reason, rows]);
    const asks = (rows: number) => ({
      state: 'suspect',
      tombstoned: 0,
      error: expect.stringMatching(
        new RegExp(`^${rows} of 90 rows are listed as deleted: deletion is held back`),
      ),
    });

    listed = all.slice(0, 10);
    await reconcile(under);
    expect(await run(under)).toMatchObject(asks(80));
    const [first] = await readDeletes(db, { all: false });
    expect(first).toMatchObject({ companyId, resource: 'documents', rows: 80, reason: 'listed' });
    // Later runs find the same deletions, except of records that are live again. The deletions wait under the
    // first run.
    listed = all.slice(0, 15);
    await reconcile(under);
    expect(await run(under)).toMatchObject(asks(75));
    expect(await readDeletes(db, { all: true })).toMatchObject([{ runId: first?.runId, rows: 75 }]);
    expect((await sumDeletedRows(db, first?.runId ?? '')).map(describeSum)).toEqual([
      '75 bills, held back: the service itself lists all 75 as deleted',
    ]);
    expect(await live()).toEqual([90, 90]);

    expect(await approveDeletes(db, first?.runId ?? '')).toEqual({ tombstoned: 75, spared: 0 });
    expect(await live()).toEqual([15, 15]);
    expect((await states(under)).filter(({ deleted_reason }) => deleted_reason === 'listed')).toHaveLength(
      75,
    );
    expect(await undoDeletes(db, first?.runId ?? '')).toMatchObject({ revived: 75 });
    expect(await live()).toEqual([90, 90]);
    // The undo was a decision about the listed state.
    await reconcile(under);
    expect(await run(under)).toMatchObject({ state: 'complete', tombstoned: 0 });

    // Another state of a document needs another decision, even if it is only one document. Documents without
    // a decision are tombstoned.
    const newer = (document: (typeof all)[number]) => ({ ...document, updated: new Date().toISOString() });
    all.push(...recent(1).map(newer));
    all[89] = newer(all[89] as (typeof all)[number]);
    listed = all;
    await reconcile(under);
    listed = all.slice(0, 89);
    await reconcile(under);
    expect(await run(under)).toMatchObject({ state: 'suspect', tombstoned: 1 });
    expect((await noted()).sort()).toEqual([
      ['applied', 'listed', 1],
      ['quarantined', 'listed', 1],
      ['undone', 'listed', 75],
    ]);
    const [waiting] = await readDeletes(db, { all: false });
    expect(await rejectDeletes(db, waiting?.runId ?? '')).toEqual({ kept: 1 });
    expect(await undoDeletes(db, waiting?.runId ?? '')).toMatchObject({ revived: 1 });
    expect(await live()).toEqual([91, 90]);
  });
});

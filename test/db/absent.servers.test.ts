import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import type { DeletesCap } from '../../contract/deletes-cap.ts';
import { countMissed } from '../../db/backfill/missed.ts';
import { finishRun, startRun } from '../../db/backfill/runs.ts';
import type { Database } from '../../db/connection/connect.ts';
import { countAbsent, countTombstoned, retireAbsent } from '../../db/deletes/absent.ts';
import { approveDeletes, readDeletes, rejectDeletes, undoDeletes } from '../../db/deletes/decide.ts';
import { sitesInDoubt } from '../../db/deletes/gone-companies.ts';
import { recordEvents } from '../../db/events/record.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import { readHealth } from '../../db/read/health.ts';
import { company, delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { untilLocked } from '../support/lock-waits.ts';
import { rowOf, writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const now = () => warehouseNow(warehouse.db);
const updated = '2026-05-01T00:00:00.000001';
const roomy: DeletesCap = { rows: 50, percent: 100 };

async function retire(
  companyId: string,
  ids: readonly string[],
  beganAt: string,
  cap = roomy,
  runId = randomUUID(),
): Promise<{ quarantined: number; tombstoned: number }> {
  const listing = { resource: 'documents', companyId } as const;
  const { quarantined } = await retireAbsent(warehouse.db, runId, listing, { ids, beganAt }, cap);
  return { quarantined, tombstoned: await countTombstoned(warehouse.db, runId, listing) };
}

/** Creates a company with `count` documents, all read before now. */
async function documentsOf(count: number): Promise<{ companyId: string; ids: string[] }> {
  const companyId = randomUUID();
  const ids = Array.from({ length: count }, () => randomUUID());
  const records = ids.map((id) => ({ id, updated }));
  await writeRecords(warehouse, 'documents', records, { readAt: await now(), companyId });
  return { companyId, ids };
}

async function alive(companyId: string): Promise<number | null> {
  const rows = await warehouse.db.execute(
    sql`select from utility.documents where company_id = ${companyId}::uuid and deleted_at is null`,
  );
  return rows.rowCount;
}

test.each([
  ['its record lists', true, true],
  ['listings of usage have', false, false],
] as const)(
  'usage that %s is tombstoned and restored together with its document (%s)',
  async (_, usage, listed) => {
    const [companyId, usageId] = [randomUUID(), randomUUID()];
    const row = { id: usageId, updated, usage: '1' };
    const record = { id: randomUUID(), updated, ...(listed ? { usageData: [row] } : {}) };
    const ofDocument = [{ ...row, document: { id: record.id } }];
    if (!listed) await writeRecords(warehouse, 'usageData', ofDocument, { readAt: await now(), companyId });
    const read = async (readAt: string, owner = companyId) =>
      await writeRecords(warehouse, 'documents', [record], { readAt, companyId: owner }, usage);
    const states = async () => {
      const of = [
        await rowOf(warehouse, 'documents', record.id),
        await rowOf(warehouse, 'usageData', usageId),
      ];
      return of.map((row) => row?.deleted_reason);
    };
    const [live, gone] = [
      [null, null],
      ['absent', 'document'],
    ];
    await read(await now());
    await retire(companyId, [], await now());
    expect(await states()).toEqual(gone);
    await read(await now());
    expect(await states()).toEqual(live);

    const [runId, before] = [randomUUID(), await now()];
    await retire(companyId, [], await now(), roomy, runId);
    await read(before);
    expect(await states()).toEqual(gone);
    expect(await undoDeletes(warehouse.db, runId)).toMatchObject({ revived: 1 });
    expect(await states()).toEqual(live);

    await countAbsent(
      warehouse.db,
      { resource: 'documents', companyId },
      { ids: [record.id], beganAt: await now() },
    );
    const again = randomUUID();
    const beforeMove = await now();
    await retire(companyId, [], await now(), roomy, again);
    await approveDeletes(warehouse.db, again);
    expect(await states()).toEqual(gone);
    // Another company's listing showed the document before the approval, but it is written after it.
    await read(beforeMove, randomUUID());
    expect(await states()).toEqual(live);
  },
);

test('a row that is read while a run waits to tombstone it stays, and the run notes no deletion of it', async () => {
  const { companyId, ids } = await documentsOf(2);
  const beganAt = await now();
  const runId = randomUUID();
  const [read = '', gone = ''] = ids;
  const retired = await warehouse.db.transaction(async (tx) => {
    const again = { id: read, updated, note: 'read again' };
    await writeRecords({ ...warehouse, db: tx as unknown as Database }, 'documents', [again], {
      readAt: await now(),
      companyId,
    });
    const retiring = retire(companyId, [], beganAt, roomy, runId);
    await untilLocked(warehouse.db, 'the run waits for the row');
    return { retiring };
  });
  expect(await retired.retiring).toEqual({ quarantined: 0, tombstoned: 1 });
  expect(await rowOf(warehouse, 'documents', read)).toMatchObject({ deleted_at: null });
  expect(await rowOf(warehouse, 'documents', gone)).toMatchObject({ deleted_reason: 'absent' });
});

test('an undo locks rows in the order of their keys, as writers do, so that the two never deadlock', async () => {
  const { companyId, ids } = await documentsOf(8);
  const runId = randomUUID();
  await retire(companyId, [], await now(), { rows: 50, percent: 100 }, runId);
  const [first = '', second = ''] = [...ids].sort();
  const undone = await warehouse.db.transaction(async (tx) => {
    await tx.execute(sql`select from utility.documents where id = ${first}::uuid for no key update`);
    const undo = undoDeletes(warehouse.db, runId);
    await untilLocked(warehouse.db, 'the undo waits for the row');
    await tx.execute(sql`set local lock_timeout = '5s'`);
    await tx.execute(sql`select from utility.documents where id = ${second}::uuid for no key update`);
    return { undo };
  });
  expect(await undone.undo).toMatchObject({ revived: 8 });
});

test('the list of deletions has the names of companies, connections and meters', async () => {
  const { db } = warehouse;
  const [runId, company, connection, nameless] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  await writeRecords(warehouse, 'companies', [{ id: company, name: 'Acme' }]);
  const of = { companyId: company };
  await writeRecords(warehouse, 'connections', [{ id: connection, datasource: 'Con Edison' }], of);
  await writeRecords(warehouse, 'meters', [{ id: 'm-7', identifiers: [{ value: 'E-1001' }] }], of);
  await db.execute(sql`
    insert into metersync.deletes (run_id, company_id, resource, record_id, state, absent_since)
    values
      (${runId}, null, 'companies', ${company}, 'quarantined', now()),
      (${runId}, ${company}, 'connections', ${connection}, 'quarantined', now()),
      (${runId}, ${company}, 'meters', 'm-7', 'quarantined', now()),
      (${runId}, ${nameless}, 'meters', 'no uuid', 'quarantined', now())`);
  const found = await readDeletes(db, { all: false, run: runId });
  expect(new Map(found.map(({ company, examples, names }) => [examples[0], { company, names }]))).toEqual(
    new Map([
      [company, { company: null, names: ['Acme'] }],
      [connection, { company: 'Acme', names: ['Con Edison'] }],
      ['m-7', { company: 'Acme', names: ['E-1001'] }],
      ['no uuid', { company: null, names: [null] }],
    ]),
  );
});

describe('more absent rows than the cap', () => {
  test.each([
    ['within both', 10, 5, { rows: 5, percent: 50 }, 0],
    ['more than the rows', 10, 5, { rows: 4, percent: 100 }, 5],
    ['more than the share', 10, 5, { rows: 50, percent: 49 }, 5],
    ['three rows, below any share', 10, 3, { rows: 50, percent: 5 }, 0],
    ['four rows, above the share', 51, 4, { rows: 50, percent: 5 }, 4],
    ['three rows, with zero rows allowed', 10, 3, { rows: 0, percent: 100 }, 3],
  ] as const)(
    'are counted against the smaller limit, of rows or share: %s',
    async (_, live, gone, cap, quarantined) => {
      const { companyId, ids } = await documentsOf(live);
      expect(await retire(companyId, ids.slice(gone), await now(), cap)).toEqual({
        quarantined,
        tombstoned: gone - quarantined,
      });
    },
  );

  test('are tombstoned by the approval, both documents and their usage', async () => {
    const [companyId, usageId, runId] = [randomUUID(), randomUUID(), randomUUID()];
    const record = { id: randomUUID(), updated, usageData: [{ id: usageId, updated }] };
    await writeRecords(warehouse, 'documents', [record], { readAt: await now(), companyId }, true);
    const [seen, none] = [
      { ids: [], beganAt: await now() },
      { rows: 0, percent: 0 },
    ];
    for (const resource of ['documents', 'usageData'] as const)
      await retireAbsent(warehouse.db, runId, { resource, companyId }, seen, none);
    expect(await approveDeletes(warehouse.db, runId)).toEqual({ tombstoned: 2, spared: 0 });
    expect(await undoDeletes(warehouse.db, runId)).toMatchObject({ revived: 2 });
    expect(await rowOf(warehouse, 'usageData', usageId)).toMatchObject({ deleted_at: null });
  });

  test('are not tombstoned by the approval if they were touched before it', async () => {
    const { companyId, ids } = await documentsOf(3);
    const runId = randomUUID();
    await retire(companyId, ids.slice(2), await now(), { rows: 0, percent: 0 }, runId);
    const [first = '', second = ''] = ids;
    await recordEvents(warehouse.db, [
      delivery(documentEvent('updated', first, '2026-05-02T00:00:00.000001')),
    ]);
    expect(await approveDeletes(warehouse.db, runId)).toEqual({ tombstoned: 1, spared: 1 });
    expect(await rowOf(warehouse, 'documents', first)).toMatchObject({ deleted_at: null });
    expect(await rowOf(warehouse, 'documents', second)).toMatchObject({ deleted_reason: 'absent' });
    expect((await readDeletes(warehouse.db, { all: false })).some((one) => one.runId === runId)).toBe(false);
  });

  test('leave the quarantine once a later pass judges the listing', async () => {
    const { companyId, ids } = await documentsOf(3);
    const first = randomUUID();
    await retire(companyId, ids.slice(2), await now(), { rows: 0, percent: 0 }, first);
    await retire(companyId, ids.slice(1), await now(), { rows: 0, percent: 0 });
    expect(await approveDeletes(warehouse.db, first)).toEqual({ tombstoned: 0, spared: 0 });
    expect(await alive(companyId)).toBe(3);
  });
});

describe('a decision', () => {
  test('to keep rows lasts until a listing shows them again, or somebody undoes it', async () => {
    const { db } = warehouse;
    const { companyId, ids } = await documentsOf(4);
    const listing = { resource: 'documents', companyId } as const;
    const none = { rows: 0, percent: 0 };
    const [runId, kept] = [randomUUID(), async () => (await readHealth(db)).keptDeletes];
    const before = await kept();
    await retire(companyId, ids.slice(2), await now(), none, runId);
    expect(await rejectDeletes(db, runId)).toEqual({ kept: 2 });
    for (const cap of [none, roomy])
      expect(await retire(companyId, ids.slice(2), await now(), cap)).toEqual({
        quarantined: 0,
        tombstoned: 0,
      });
    const seen = { ids: ids.slice(2), beganAt: await now() };
    expect(await countAbsent(db, listing, seen)).toMatchObject({ live: 4, absent: 0 });
    expect(await kept()).toBe(before + 2);
    // Other absent rows are judged separately.
    expect(await retire(companyId, ids.slice(3), await now(), none)).toMatchObject({ quarantined: 1 });

    await countAbsent(db, listing, { ids: ids.slice(1), beganAt: await now() });
    expect(await kept()).toBe(before + 1);
    expect(await retire(companyId, ids.slice(2), await now(), roomy)).toEqual({
      quarantined: 0,
      tombstoned: 1,
    });

    expect(await undoDeletes(db, runId)).toEqual({ revived: 0, waiting: 1 });
    expect(await kept()).toBe(before);
    const later = randomUUID();
    expect(await retire(companyId, ids.slice(2), await now(), none, later)).toMatchObject({ quarantined: 1 });
    expect(await approveDeletes(db, later)).toEqual({ tombstoned: 1, spared: 0 });
    expect(await alive(companyId)).toBe(2);
  });

  test('to undo restores the rows that the run tombstoned, except rows that an event has tombstoned since', async () => {
    const { companyId, ids } = await documentsOf(3);
    const runId = randomUUID();
    await retire(companyId, ids.slice(2), await now(), roomy, runId);
    const [first = '', second = ''] = ids;
    await recordEvents(warehouse.db, [
      delivery(documentEvent('deleted', first, '2026-05-02T00:00:00.000001')),
    ]);
    expect(await undoDeletes(warehouse.db, runId)).toEqual({ revived: 1, waiting: 0 });
    expect(await rowOf(warehouse, 'documents', second)).toMatchObject({ deleted_at: null });
    expect(await rowOf(warehouse, 'documents', first)).toMatchObject({ deleted_reason: 'event' });
    // The undone rows are kept. After a second undo a person has to decide again.
    const again = async () => await retire(companyId, ids.slice(2), await now(), roomy);
    expect(await again()).toEqual({ quarantined: 0, tombstoned: 0 });
    expect(await undoDeletes(warehouse.db, runId)).toEqual({ revived: 0, waiting: 2 });
    expect(await again()).toEqual({ quarantined: 0, tombstoned: 1 });
  });
});

describe('the list of companies', () => {
  test('tombstones companies that it lacks or that only events named, except companies whose records were read', async () => {
    const [listed, gone, claimed, configured] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    const { companyId: read } = await documentsOf(1);
    await writeRecords(warehouse, 'companies', [{ id: listed }, { id: gone }], { readAt: await now() });
    await warehouse.db.execute(sql`
      insert into utility.companies (id) values (${read}::uuid), (${claimed}::uuid), (${configured}::uuid)`);
    const list = { resource: 'companies', companyId: null, configured: [configured] } as const;
    const seen = { ids: [listed], beganAt: await now() };
    await retireAbsent(warehouse.db, randomUUID(), list, seen, roomy);
    for (const id of [gone, claimed])
      expect(await rowOf(warehouse, 'companies', id)).toMatchObject({ deleted_reason: 'absent' });
    for (const id of [listed, read, configured])
      expect(await rowOf(warehouse, 'companies', id)).toMatchObject({ deleted_at: null });
    await writeRecords(warehouse, 'companies', [{ id: gone }], { readAt: await now() });
    expect(await rowOf(warehouse, 'companies', gone)).toMatchObject({ deleted_at: null });
  });

  test('tombstones any number of companies that only events named, but no company if the list is empty', async () => {
    const list = { resource: 'companies', companyId: null } as const;
    const listed = randomUUID();
    await writeRecords(warehouse, 'companies', [{ id: listed }], { readAt: await now() });
    await warehouse.db.execute(sql`insert into utility.companies (id, name)
      select gen_random_uuid(), 'claimed' from generate_series(1, 100)`);
    const claimed = sql`select from utility.companies where name = 'claimed' and deleted_at is null`;
    const cap = { rows: 10, percent: 0 };
    await retireAbsent(warehouse.db, randomUUID(), list, { ids: [], beganAt: await now() }, cap);
    expect((await warehouse.db.execute(claimed)).rowCount).toBe(100);
    await retireAbsent(warehouse.db, randomUUID(), list, { ids: [listed], beganAt: await now() }, cap);
    expect((await warehouse.db.execute(claimed)).rowCount).toBe(0);
  });

  test('decides which sites are absent, and confirms a site that the record of its company already lacked', async () => {
    const [id, kept, gone] = [randomUUID(), randomUUID(), randomUUID()];
    const read = async (sites: unknown) => {
      const readAt = await now();
      for (const listing of ['companies', 'sites'] as const)
        await writeRecords(warehouse, listing, [{ id, sites }], { readAt });
      return readAt;
    };
    const absent = async (beganAt: string) => await sitesInDoubt(warehouse.db, [id], beganAt);
    expect(await absent(await read([{ id: kept }, { id: gone }]))).toEqual([]);
    const one = { companyId: id, named: [kept] };
    expect(await absent(await read([{ id: kept.toUpperCase() }]))).toEqual([{ ...one, confirmed: false }]);
    const again = await read([{ id: kept.toUpperCase() }]);
    expect(await absent(again)).toEqual([{ ...one, confirmed: true }]);
    const sites = { resource: 'sites', companyId: id } as const;
    expect(await countAbsent(warehouse.db, sites, { ids: [kept], beganAt: again })).toEqual({
      live: 2,
      absent: 1,
      shared: false,
    });
    const runId = randomUUID();
    await retireAbsent(warehouse.db, runId, sites, { ids: [kept], beganAt: again }, roomy);
    expect(await rowOf(warehouse, 'sites', gone)).toMatchObject({ deleted_reason: 'absent' });
    expect(await countTombstoned(warehouse.db, runId, { resource: 'companies', companyId: null })).toBe(1);
    expect(await absent(await read(undefined))).toEqual([]);
    expect(await undoDeletes(warehouse.db, runId)).toMatchObject({ revived: 1 });
    await read([{ id: kept }, { id: gone }]);
    for (const site of [kept, gone])
      expect(await rowOf(warehouse, 'sites', site)).toMatchObject({ deleted_at: null });
  });
});

describe('a change that a run finds without an event', () => {
  const listing = (companyId: string) => ({ resource: 'documents', companyId }) as const;
  const startedAt = async (runId: string, companyId: string, at: string, state: 'complete' | 'suspect') => {
    const key = { runId, companyId, resource: 'documents' };
    await startRun(warehouse.db, key);
    await finishRun(warehouse.db, key, state);
    await warehouse.db.execute(
      sql`update metersync.runs set started_at = ${at}::timestamptz where run_id = ${runId}::uuid`,
    );
  };
  const run = async (before: string | null, changes: readonly { reported?: boolean; updated: string }[]) => {
    const companyId = company.id;
    await warehouse.db.execute(sql`delete from metersync.runs where company_id = ${companyId}::uuid`);
    await warehouse.db.execute(sql`delete from utility.documents where company_id = ${companyId}::uuid`);
    if (before !== null) await startedAt(randomUUID(), companyId, before, 'complete');
    const runId = randomUUID();
    await startedAt(runId, companyId, '2026-06-02T00:00:00Z', 'complete');
    for (const change of changes) {
      const id = randomUUID();
      if (change.reported)
        await recordEvents(warehouse.db, [delivery(documentEvent('updated', id, change.updated))]);
      const records = [{ id, updated: change.updated }];
      await writeRecords(warehouse, 'documents', records, { readAt: '2026-06-02T00:00:01Z', companyId });
    }
    return await countMissed(warehouse.db, runId, listing(companyId));
  };
  const last = '2026-06-01T00:00:00Z';

  test('is counted if it lies between the last complete run and this run', async () => {
    expect(await run(last, [{ updated: '2026-06-01T12:00:00.000001' }])).toBe(1);
  });

  test.each([
    ['in a first run', null, { updated: '2026-06-01T12:00:00.000001' }],
    ['when an event reported it', last, { updated: '2026-06-01T12:00:00.000001', reported: true }],
    ['when it is older than the last run', last, { updated: '2026-05-01T12:00:00.000001' }],
    ['when its event may still be under way', last, { updated: '2026-06-01T23:59:00.000001' }],
  ] as const)('is not counted %s', async (_, before, change) => {
    expect(await run(before, [change])).toBe(0);
  });

  test.each([
    ['is counted if no event has deleted it since', '2026-06-01T12:00:00Z', false, 1],
    ['is counted by the next run if it was found shortly before this run', '2026-06-01T23:57:00Z', false, 0],
    ['is not counted twice', '2026-05-31T23:54:00Z', false, 0],
    ['is counted if it was found shortly before the last run', '2026-05-31T23:57:00Z', false, 1],
    ['is not counted if the event of its deletion was late', '2026-06-01T12:00:00Z', true, 0],
  ] as const)('a record that an earlier run found gone %s', async (_, goneSince, reported, missed) => {
    const id = randomUUID();
    const runId = randomUUID();
    expect(await run(last, [])).toBe(0);
    await warehouse.db.execute(sql`delete from metersync.runs where started_at > ${last}::timestamptz`);
    await startedAt(runId, company.id, '2026-06-02T00:00:00Z', 'complete');
    const records = [{ id, updated: '2026-05-01T00:00:00Z' }];
    await writeRecords(warehouse, 'documents', records, { readAt: last, companyId: company.id });
    await warehouse.db.execute(sql`update utility.documents
      set absent_since = ${goneSince}::timestamptz, absent_by = 'listed'
      where id = ${id}::uuid`);
    if (reported)
      await recordEvents(warehouse.db, [delivery(documentEvent('deleted', id, '2026-05-01T00:00:00Z'))]);
    expect(await countMissed(warehouse.db, runId, listing(company.id))).toBe(missed);
  });
});

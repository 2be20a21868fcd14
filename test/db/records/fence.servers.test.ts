import { randomUUID } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { finishListing } from '../../../db/backfill/manifest.ts';
import { retireListed } from '../../../db/backfill/reconcile.ts';
import type { Database, Executor } from '../../../db/connection/connect.ts';
import { clearQuarantine, countAbsent, retireAbsent } from '../../../db/deletes/absent.ts';
import { warehouseNow } from '../../../db/queue/due.ts';
import { forgetListed } from '../../../db/records/also-listed.ts';
import { proving } from '../../../db/records/fence.ts';
import { writeDocumentSets, writePage } from '../../../db/records/write-page.ts';
import type { RecordResource } from '../../../db/resources.ts';
import { deletes } from '../../../db/schema/reads.ts';
import { forFile } from '../../support/for-file.ts';
import { untilLocked } from '../../support/lock-waits.ts';
import { pageOfRecords, rowOf, writeRecords } from '../../support/pages.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());
const { db } = warehouse;

const now = () => warehouseNow(db);
const nothing = { inserted: 0, changed: 0, rejected: 0 };

/** Moves the fence of a listing to a walk that began now or at the given time. */
const prove = async (
  resource: RecordResource,
  companyId: string | null,
  began?: string,
  tx: Executor = db,
): Promise<void> => {
  await proving(tx, { resource, companyId, began: began ?? (await now()) });
};

const listings = ['connections', 'documents', 'usageData', 'meters', 'companies', 'sites'] as const;
type Listing = (typeof listings)[number];

/** A record without `updated`. The page of companies that has a site is written to the sites. */
const recordOf = (listing: Listing, id: string, value: string): { readonly id: string } => {
  if (listing === 'sites') return { id: siteCompany, sites: [{ id, name: value }] } as { id: string };
  const fields = { status: value, number: value, name: value, label: value };
  return { id, ...fields, ...(listing === 'usageData' ? { document: { id: documentOfUsage } } : {}) };
};
const [siteCompany, documentOfUsage] = [randomUUID(), randomUUID()];

const textOf = async (listing: Listing, id: string): Promise<unknown> => {
  const { raw } = ((await rowOf(warehouse, listing, id)) ?? {}) as { raw?: { name?: string } };
  return raw?.name;
};

describe.each(listings)('a page of %s', (listing) => {
  const companyId = listing === 'companies' || listing === 'sites' ? null : randomUUID();
  const write = (id: string, value: string, readAt: string) =>
    writeRecords(warehouse, listing, [recordOf(listing, id, value)], { readAt, companyId });

  test('that was read before the newest proved walk began is not written, and the next one is', async () => {
    const company = { id: siteCompany };
    if (listing === 'sites') await writeRecords(warehouse, 'companies', [company], { readAt: await now() });
    const [held, fresh] = [randomUUID(), randomUUID()];
    await write(held, 'new', await now());
    const late = await now();
    await prove(listing, companyId);
    expect([await write(held, 'late', late), await write(fresh, 'late', late)]).toEqual([nothing, nothing]);
    expect([await textOf(listing, held), await textOf(listing, fresh)]).toEqual(['new', undefined]);
    expect(await write(held, 'next', await now())).toEqual({ ...nothing, changed: 1 });
    expect(await textOf(listing, held)).toBe('next');
  });
});

test('a late page of usage adds no documents', async () => {
  const [companyId, documentId] = [randomUUID(), randomUUID()];
  const readAt = await now();
  await prove('usageData', companyId);
  const usage = { id: randomUUID(), document: { id: documentId } };
  expect(await writeRecords(warehouse, 'usageData', [usage], { readAt, companyId })).toEqual(nothing);
  expect(await rowOf(warehouse, 'documents', documentId)).toBeUndefined();
});

test('the page of a walk is dated with the beginning of the walk, whenever the page was asked', async () => {
  const [companyId, id] = [randomUUID(), randomUUID()];
  const walkBegan = await now();
  await prove('meters', companyId);
  const read = { companyId, readAt: await now() };
  const page = { ...pageOfRecords([{ id }], read), walkBegan };
  expect(await writePage(db, 'meters', page, [id])).toEqual(nothing);
});

test('each listing has a fence of its own', async () => {
  const [companyId, other, id] = [randomUUID(), randomUUID(), randomUUID()];
  const readAt = await now();
  await prove('documents', companyId);
  await prove('meters', other);
  await prove('companies', null);
  expect(await writeRecords(warehouse, 'meters', [{ id }], { companyId, readAt })).toMatchObject({
    inserted: 1,
  });
});

test('a fence in the future, set by a clock that was wrong, holds nothing up, and the next proof moves it back', async () => {
  const [companyId, id] = [randomUUID(), randomUUID()];
  await prove('meters', companyId, '2100-01-01T00:00:00Z');
  const write = async (readAt: string) =>
    await writeRecords(warehouse, 'meters', [{ id, label: readAt }], { companyId, readAt });
  const readAt = await now();
  expect(await write(readAt)).toMatchObject({ inserted: 1 });
  await prove('meters', companyId);
  expect(await write(readAt)).toEqual(nothing);
});

describe('a page and a proof at the same time', () => {
  test('a page that finds the proof under way waits for it, and is late', async () => {
    const [companyId, id] = [randomUUID(), randomUUID()];
    await prove('meters', companyId);
    const readAt = await now();
    const { written } = await db.transaction(async (tx) => {
      await prove('meters', companyId, await now(), tx);
      const writing = writeRecords(warehouse, 'meters', [{ id }], { companyId, readAt });
      await untilLocked(db, 'the page waits for the proof');
      // In an object, because the transaction would wait for a promise that it returns.
      return { written: writing };
    });
    expect(await written).toEqual(nothing);
  });

  test('a proof waits for a page that is being written, and pages do not wait for each other', async () => {
    const [companyId, id, other] = [randomUUID(), randomUUID(), randomUUID()];
    await prove('meters', companyId);
    const read = { companyId, readAt: await now() };
    const { proved } = await db.transaction(async (tx) => {
      const ofPage = { ...warehouse, db: tx as unknown as Database };
      expect(await writeRecords(ofPage, 'meters', [{ id }], read)).toMatchObject({ inserted: 1 });
      expect(await writeRecords(warehouse, 'meters', [{ id: other }], read)).toMatchObject({ inserted: 1 });
      const proving = prove('meters', companyId);
      await untilLocked(db, 'the proof waits for the page');
      // In an object, because the transaction would wait for a promise that it returns.
      return { proved: proving };
    });
    await proved;
    expect(await writeRecords(warehouse, 'meters', [{ id, label: 'late' }], read)).toEqual(nothing);
  });
});

describe('once a later walk is proved', () => {
  const cap = { rows: 50, percent: 100 };
  /** Writes documents, and then proves a walk. A walk that began at `beganAt`, between the two, is overtaken. */
  async function overtaken(count: number) {
    const companyId = randomUUID();
    const ids = Array.from({ length: count }, () => randomUUID()).sort();
    const records = ids.map((id) => ({ id }));
    await writeRecords(warehouse, 'documents', records, { companyId, readAt: await now() });
    const beganAt = await now();
    await prove('documents', companyId);
    return { companyId, ids, beganAt };
  }
  const lives = async (id = ''): Promise<boolean> =>
    (await rowOf(warehouse, 'documents', id))?.deleted_at === null;

  test('an earlier walk does not tombstone the rows that it lacks, and the proved walk does', async () => {
    const { companyId, ids, beganAt } = await overtaken(1);
    const listing = { resource: 'documents', companyId } as const;
    const retireAll = async (began: string) =>
      await retireAbsent(db, randomUUID(), listing, { ids: [], beganAt: began }, cap);
    expect(await retireAll(beganAt)).toMatchObject({ overtaken: true });
    expect(await lives(ids[0])).toBe(true);
    const again = await now();
    await prove('documents', companyId, again);
    await retireAll(again);
    expect(await lives(ids[0])).toBe(false);
  });

  test('an earlier pass ends neither what a later one holds back nor what somebody keeps', async () => {
    const { companyId, ids } = await overtaken(2);
    const [held = '', kept = ''] = ids;
    const listing = { resource: 'documents', companyId } as const;
    const key = { ...listing, runId: randomUUID() };
    const [before, since] = [await now(), await now()];
    for (const [id, state] of [
      [held, 'quarantined'],
      [kept, 'rejected'],
    ] as const)
      await db.insert(deletes).values({ ...key, recordId: id, state, absentSince: since });
    const counts = { pages: 1, passes: 1, reportedTotal: 2, distinctIds: 2, unchanged: 2, ...nothing };
    const end = { state: 'complete', counts, lacksNothing: true, mayHaveMissed: false } as const;
    const judge = async (beganAt: string) => {
      await countAbsent(db, listing, { ids, beganAt });
      await clearQuarantine(db, listing, beganAt);
      await finishListing(db, key, { ...end, provedBegan: beganAt });
      return await db.$count(deletes, eq(deletes.runId, key.runId));
    };
    expect([await judge(before), await judge(await now())]).toEqual([2, 0]);
  });

  test('the sites of a company are judged by the fence of the list of companies', async () => {
    const [companyId, id] = [randomUUID(), randomUUID()];
    const company = { id: companyId, sites: [{ id }] };
    for (const listing of ['companies', 'sites'] as const)
      await writeRecords(warehouse, listing, [company], { readAt: await now() });
    const beganAt = await now();
    await prove('companies', null);
    const seen = { ids: [], beganAt, of: { resource: 'companies', companyId: null } } as const;
    const listing = { resource: 'sites', companyId } as const;
    expect(await retireAbsent(db, randomUUID(), listing, seen, cap)).toMatchObject({ overtaken: true });
  });

  test('an earlier listing with deleted documents tombstones none', async () => {
    const { companyId, ids, beganAt } = await overtaken(1);
    const listed = ids.map((id) => ({ id, updated: null }));
    const retire = async (began: string) =>
      (await retireListed(db, randomUUID(), companyId, listed, began, cap)).tombstoned;
    expect([await retire(beganAt), await retire(await now())]).toEqual([0, 1]);
  });

  test('an earlier walk does not give records to another company that lists them', async () => {
    const [small, large, id] = [...[randomUUID(), randomUUID()].sort(), randomUUID()] as [
      string,
      string,
      string,
    ];
    for (const companyId of [small, large])
      await writeRecords(warehouse, 'documents', [{ id }], { companyId, readAt: await now() });
    await writeRecords(warehouse, 'companies', [{ id: small }, { id: large }], { readAt: await now() });
    const beganAt = await now();
    await prove('documents', small);
    const owner = async () => (await rowOf(warehouse, 'documents', id))?.company_id;
    const listing = { resource: 'documents', companyId: small } as const;
    await forgetListed(db, listing, { ids: [], beganAt });
    expect(await owner()).toBe(small);
    await forgetListed(db, listing, { ids: [], beganAt: await now() });
    expect(await owner()).toBe(large);
  });

  test('an earlier read of a document by its id replaces neither the document nor its usage', async () => {
    const { companyId, ids, beganAt: readAt } = await overtaken(1);
    const [id = ''] = ids;
    const usageId = randomUUID();
    const usage = { id: usageId, document: { id }, name: 'new' };
    await writeRecords(warehouse, 'usageData', [usage], { companyId, readAt });
    await prove('usageData', companyId);
    const read = { companyId, readAt };
    const written = async (readAt: string, records: object[]) => {
      const page = { ...pageOfRecords([{ id, name: readAt }], { ...read, readAt }), byId: true };
      const usagePage = { ...pageOfRecords(records, { ...read, readAt }), byId: true };
      const usageIds = records.map((record) => (record as { id: string }).id);
      await writeDocumentSets(db, {
        documentIds: [id],
        documents: { page, ids: [id] },
        usage: { page: usagePage, ids: usageIds },
        readAt,
      });
      const rows = [await rowOf(warehouse, 'documents', id), await rowOf(warehouse, 'usageData', usageId)];
      const names = rows.map((row) => (row?.raw as { name?: string } | undefined)?.name);
      return names.map((name, at) => [name, rows[at]?.deleted_reason ?? null]);
    };
    const others = [{ id: randomUUID(), document: { id }, name: 'late' }];
    expect(await written(readAt, others)).toEqual([
      [undefined, null],
      ['new', null],
    ]);
    const later = await now();
    expect(await written(later, [])).toEqual([
      [later, null],
      ['new', 'absent'],
    ]);
  });
});

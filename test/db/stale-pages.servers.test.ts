import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { warehouseNow } from '../../db/catch-up/due.ts';
import { recordEvents } from '../../db/events/record-events.ts';
import { retireUsage } from '../../db/hot/retire-usage.ts';
import { writePage } from '../../db/records/write-page.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { untilLocked } from '../support/lock-waits.ts';
import { type Listing, rowOf, writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
beforeAll(async () => {
  warehouse = await createWarehouse();
});
afterAll(() => warehouse.drop());

const updated = '2026-05-01T00:00:00.000002';
const aDocument = () => {
  const id = randomUUID();
  const usageId = randomUUID();
  return {
    id,
    usageId,
    record: { id, updated },
    usage: { id: usageId, updated, usage: '1', document: { id } },
    deleted: delivery(documentEvent('deleted', id, updated)),
  };
};
const lives = async (listing: Listing, id: string) => {
  const row = await rowOf(warehouse, listing, id);
  return row !== undefined && row.deleted_at === null;
};

describe('a page that was read before a document was deleted, and is written after its event', () => {
  test('restores neither the document nor its usage', async () => {
    const { id, usageId, record, usage, deleted } = aDocument();
    await writeRecords(warehouse, 'documents', [record], { readAt: '2026-05-02T00:00:00Z' });
    await writeRecords(warehouse, 'usageData', [usage], { readAt: '2026-05-02T00:00:00Z' });
    const readAt = await warehouseNow(warehouse.db);
    await recordEvents(warehouse.db, [deleted]);
    await writeRecords(warehouse, 'documents', [{ ...record, note: 'as it was' }], { readAt });
    await writeRecords(warehouse, 'usageData', [{ ...usage, usage: '2' }], { readAt });
    expect([await lives('documents', id), await lives('usageData', usageId)]).toEqual([false, false]);
  });

  test('inserts neither as live if both are new', async () => {
    const { id, usageId, record, usage, deleted } = aDocument();
    const readAt = await warehouseNow(warehouse.db);
    await recordEvents(warehouse.db, [deleted]);
    await writeRecords(warehouse, 'documents', [record], { readAt });
    await writeRecords(warehouse, 'usageData', [usage], { readAt });
    expect([await lives('documents', id), await lives('usageData', usageId)]).toEqual([false, false]);
  });

  test('a newer state that the service restores undoes the event, even if the receiver’s clock is ahead', async () => {
    const { id, usageId, record, usage, deleted } = aDocument();
    await writeRecords(warehouse, 'usageData', [usage], { readAt: '2026-05-02T00:00:00Z' });
    const receivedAt = new Date(Date.now() + 240_000).toISOString();
    await recordEvents(warehouse.db, [{ ...deleted, receivedAt }]);
    expect(await lives('usageData', usageId)).toBe(false);
    const readAt = await warehouseNow(warehouse.db);
    const restored = { ...record, updated: '2026-05-01T00:00:00.000003' };
    await writeRecords(warehouse, 'documents', [restored], { readAt });
    await writeRecords(warehouse, 'usageData', [usage], { readAt });
    expect([await lives('documents', id), await lives('usageData', usageId)]).toEqual([true, true]);
  });
});

describe('a delete event and a page of usage that are written at the same time', () => {
  const pageOf = (usage: object, readAt: string) => ({
    body: JSON.stringify([usage]),
    itemsKey: null,
    companyId: null,
    readAt,
    apiVersion: 'v2.2',
  });
  const someoneWaits = () => untilLocked(warehouse.db, 'one transaction waits for the other');

  test('wait for each other: the event tombstones what the page wrote', async () => {
    const { usageId, usage, deleted } = aDocument();
    const readAt = await warehouseNow(warehouse.db);
    let recorded: Promise<unknown> | undefined;
    await warehouse.db.transaction(async (tx) => {
      await writePage(tx, 'usageData', pageOf(usage, readAt), [usageId]);
      recorded = recordEvents(warehouse.db, [deleted]);
      await someoneWaits();
    });
    await recorded;
    expect(await rowOf(warehouse, 'usageData', usageId)).toMatchObject({ deleted_reason: 'document' });
  });

  test('wait for each other: the page writes nothing after the event', async () => {
    const { id, usageId, record, usage } = aDocument();
    await writeRecords(warehouse, 'documents', [record]);
    const readAt = await warehouseNow(warehouse.db);
    let written: Promise<unknown> | undefined;
    await warehouse.db.transaction(async (tx) => {
      await tx.execute(
        sql`update utility.documents set deleted_at = now(), deleted_reason = 'event' where id = ${id}::uuid`,
      );
      written = writeRecords(warehouse, 'usageData', [usage], { readAt });
      await someoneWaits();
    });
    await written;
    expect(await rowOf(warehouse, 'usageData', usageId)).toBeUndefined();
  });
});

describe('usage that a correction removed', () => {
  test('is not inserted by a page that was read before the correction and is written after it', async () => {
    const { id, usageId, record, usage } = aDocument();
    await writeRecords(warehouse, 'documents', [record]);
    const [before, correction] = [await warehouseNow(warehouse.db), await warehouseNow(warehouse.db)];
    await retireUsage(warehouse.db, [id], [], correction);
    await writeRecords(warehouse, 'usageData', [usage], { readAt: before });
    expect(await rowOf(warehouse, 'usageData', usageId)).toBeUndefined();
    await writeRecords(warehouse, 'usageData', [usage], { readAt: await warehouseNow(warehouse.db) });
    expect(await lives('usageData', usageId)).toBe(true);
  });

  test('is tombstoned by a read of its document without it, unless a later read contained it', async () => {
    const { id, usageId, record, usage } = aDocument();
    await writeRecords(warehouse, 'documents', [record]);
    const before = await warehouseNow(warehouse.db);
    await writeRecords(warehouse, 'usageData', [usage], { readAt: await warehouseNow(warehouse.db) });
    await retireUsage(warehouse.db, [id], [], before);
    expect(await lives('usageData', usageId)).toBe(true);
    await retireUsage(warehouse.db, [id], [], await warehouseNow(warehouse.db));
    expect(await rowOf(warehouse, 'usageData', usageId)).toMatchObject({ deleted_reason: 'absent' });
  });
});

import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { recordEvents } from '../../db/events/record.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import { writePage } from '../../db/records/write-page.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { untilLocked } from '../support/lock-waits.ts';
import { rowOf, writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

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

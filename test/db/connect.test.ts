import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { recordEvents } from '../../db/record/record-events.ts';
import { delivery, intervalsEvent } from '../support/events.ts';
import { outageOf } from '../support/outage.ts';
import { createWarehouse } from '../support/warehouse.ts';

test('a connection that is cut fails the work that used it, and nothing else', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const outage = await outageOf(warehouse.url);
  onTestFinished(() => outage.close());

  const work = warehouse.db.transaction(async (tx) => {
    await tx.execute(sql`select 1`);
    // In use, and between two statements: nobody waits for it that could be told.
    await outage.cut();
    await tx.execute(sql`select 2`);
  });
  await expect(work).rejects.toThrow();
  expect((await warehouse.db.execute(sql`select 3 as n`)).rows).toEqual([{ n: 3 }]);
});

test('a warehouse that is away is unavailable, which is retried; once it is back every connection is', async () => {
  const warehouse = await createWarehouse();
  const outage = await outageOf(warehouse.url);
  onTestFinished(async () => {
    await outage.close();
    await warehouse.drop();
  });
  const event = () => delivery(intervalsEvent('m-1', '2026-01-01', '2026-01-02', 96));
  const together = () => Array.from({ length: 20 }, () => recordEvents(warehouse.db, [event()]));
  await Promise.all(together());
  await outage.begin();
  for (const { reason } of (await Promise.allSettled(together())) as PromiseRejectedResult[]) {
    expect(reason).toMatchObject({ code: 'WAREHOUSE_UNAVAILABLE', action: 'retry' });
  }
  await outage.end();
  await Promise.all(together());
  expect(warehouse.pool.idleCount).toBe(warehouse.pool.totalCount);
});

test('the error of the work is told, not that of the rollback which cannot follow', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const outage = await outageOf(warehouse.url);
  onTestFinished(() => outage.close());
  const work = warehouse.db.transaction(async () => {
    await outage.cut();
    throw new Error('the reason');
  });
  await expect(work).rejects.toThrow('the reason');
});

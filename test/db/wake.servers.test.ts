import { randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { parkOwner } from '../../db/catch-up/postpone.ts';
import { recordEvents } from '../../db/events/record-events.ts';
import { trySleep } from '../../db/events/wake.ts';
import { company, delivery, documentEvent, intervalsEvent } from '../support/events.ts';
import { writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
beforeEach(async () => {
  await warehouse?.drop();
  warehouse = await createWarehouse();
});
afterAll(() => warehouse.drop());

const meterEvent = (meterId: string) => delivery(intervalsEvent(meterId, '2026-01-01', '2026-01-02', 96));
const sleep = () => warehouse.db.transaction((tx) => trySleep(tx, 'intervals'));

describe('a catch-up that wants to sleep', () => {
  test('may sleep if nothing waits, and is only woken by the next event', async () => {
    expect(await sleep()).toEqual({ asleep: true, dueInMs: null });
    expect((await recordEvents(warehouse.db, [meterEvent('m-1')])).wake).toEqual(['intervals']);
    expect((await recordEvents(warehouse.db, [meterEvent('m-2')])).wake).toEqual([]);
  });

  test('must not sleep while something is due', async () => {
    await recordEvents(warehouse.db, [meterEvent('m-1')]);
    expect(await sleep()).toEqual({ asleep: false, dueInMs: 0 });
    expect((await recordEvents(warehouse.db, [meterEvent('m-2')])).wake).toEqual([]);
  });

  test('is woken by a new event while it waits for a postponed event', async () => {
    await recordEvents(warehouse.db, [meterEvent('parked')]);
    await parkOwner(warehouse.db, 'intervals', 'parked', {
      code: 'SERVICE_ACCESS_DENIED',
      message: 'SERVICE_ACCESS_DENIED: 403',
    });
    expect(await sleep()).toEqual({ asleep: false, dueInMs: expect.closeTo(10_000, -4) });
    expect((await recordEvents(warehouse.db, [meterEvent('m-1')])).wake).toEqual(['intervals']);
  });
});

describe('a group that is recorded again because its worker was killed', () => {
  const event = () => delivery(documentEvent('created', randomUUID(), '2026-01-02T00:00:00.000001'));

  test('returns the catch-ups to wake again', async () => {
    const group = [event(), event()];
    expect(await recordEvents(warehouse.db, group)).toMatchObject({ fresh: 2, wake: ['documents'] });
    const again = await recordEvents(warehouse.db, group);
    expect(again).toMatchObject({ fresh: 0, duplicates: 2, wake: ['documents'] });
  });

  test('also returns catch-ups whose events were settled meanwhile, because nothing else would wake them', async () => {
    const id = randomUUID();
    const updated = '2026-01-02T00:00:00.000001';
    await writeRecords(warehouse, 'companies', [company]);
    const group = [delivery(documentEvent('created', id, updated))];
    expect((await recordEvents(warehouse.db, group)).wake).toEqual(['documents']);
    await recordEvents(warehouse.db, [delivery(documentEvent('deleted', id, updated))]);
    expect((await recordEvents(warehouse.db, group)).wake).toEqual(['documents']);
    await warehouse.db.transaction((tx) => trySleep(tx, 'documents'));
    expect((await recordEvents(warehouse.db, group)).wake).toEqual([]);
  });
});

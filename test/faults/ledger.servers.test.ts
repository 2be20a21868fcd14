import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { recordEvents } from '../../db/events/record.ts';
import { connectionEvent, delivery, documentEvent } from '../support/events.ts';
import { createWarehouse } from '../support/warehouse.ts';
import { checkLedger, type Effect, readEffects, readUndone, watchEffects } from './ledger.ts';
import { blowsFor, partNames } from './plan.ts';

const kept = { acknowledgedWithoutEffect: [], neverSent: [], moreThanOnce: [], deadWithoutReason: [] };
const sent = { sent: new Set(['a', 'b', 'c']), acknowledged: new Set(['a', 'b']), answers: {} };
const effect = (id: string, more: Partial<Effect> = {}): Effect => ({
  id,
  outcome: 'applied',
  error: null,
  times: 1,
  ...more,
});

test('the ledger finds nothing if all promises are kept, with or without an event that was not acknowledged', () => {
  expect(checkLedger(sent, [effect('a'), effect('b')])).toEqual(kept);
  expect(checkLedger(sent, [effect('a'), effect('b', { outcome: 'superseded' }), effect('c')])).toEqual(kept);
  expect(checkLedger(sent, [effect('a'), effect('b', { outcome: 'dead', error: 'why' })])).toEqual(kept);
});

test.each([
  ['an acknowledged event that is nowhere', [effect('a')], { acknowledgedWithoutEffect: ['b'] }],
  [
    'an acknowledged event that is still pending',
    [effect('a'), effect('b', { outcome: 'pending' })],
    { acknowledgedWithoutEffect: ['b'] },
  ],
  ['an event that was never sent', [effect('a'), effect('b'), effect('d')], { neverSent: ['d'] }],
  ['an unwatched event', [effect('a'), effect('b', { times: 0 })], { moreThanOnce: ['b'] }],
  ['an event with two effects', [effect('a'), effect('b', { times: 2 })], { moreThanOnce: ['b'] }],
  [
    'a dead event without a reason',
    [effect('a'), effect('b', { outcome: 'dead' })],
    { deadWithoutReason: ['b'] },
  ],
])('the ledger finds %s', (_what, effects, found) => {
  expect(checkLedger(sent, effects)).toEqual({ ...kept, ...found });
});

describe('effects of events', () => {
  let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
  beforeAll(async () => {
    warehouse = await createWarehouse();
    await watchEffects(warehouse);
  });
  afterAll(() => warehouse.drop());
  const timesOf = async ({ id }: { id: string }) =>
    (await readEffects(warehouse)).find((effect) => effect.id === id)?.times;

  test('are one for an event that is delivered twice, and two if it is applied twice', async () => {
    const waits = delivery(documentEvent('created', randomUUID(), '2026-01-01T00:00:00'));
    const settled = delivery(documentEvent('deleted', randomUUID(), '2026-01-01T00:00:00'));
    for (const event of [waits, settled]) {
      for (let n = 0; n < 2; n += 1) await recordEvents(warehouse.db, [event]);
      expect(await timesOf(event)).toBe(1);
      await recordEvents(warehouse.db, [event], { replay: 'all' });
      expect(await timesOf(event)).toBe(2);
    }
  });

  test('are one for a dead event, however often it is retried', async () => {
    const event = delivery('not JSON');
    for (let n = 0; n < 3; n += 1) await recordEvents(warehouse.db, [event]);
    expect(await timesOf(event)).toBe(1);
  });

  test('show that a newer state was undone, even if a newer state comes back', async () => {
    const [steady, undone] = [randomUUID(), randomUUID()];
    const deliver = (id: string, updated: string, status: string) =>
      recordEvents(warehouse.db, [delivery(connectionEvent('updated', id, updated, status))]);
    for (const id of [steady, undone]) {
      await deliver(id, '2026-01-01T00:00:00', 'ACTIVE');
      await deliver(id, '2026-01-02T00:00:00', 'ERROR');
    }
    expect(await readUndone(warehouse)).toEqual([]);
    await warehouse.db.execute(
      sql`update utility.connections set status = 'ACTIVE', updated = '2026-01-01' where id = ${undone}`,
    );
    await deliver(undone, '2026-01-02T00:00:00.000001', 'ERROR');
    expect(await readUndone(warehouse)).toEqual([undone]);
  });
});

test('the plan of kills depends only on the seed and the fault', () => {
  const plan = (seed: number, fault: string) =>
    blowsFor(seed, fault, { times: 5, parts: partNames, afterMs: [0, 1_000], downMs: [0, 1_000] });
  expect(plan(1, 'C5')).toEqual(plan(1, 'C5'));
  expect(plan(1, 'C5')).not.toEqual(plan(2, 'C5'));
  expect(plan(1, 'C5')).not.toEqual(plan(1, 'C4'));
  for (const { at } of plan(1, 'C5'))
    expect(at.map(({ part }) => part).sort()).toEqual([...partNames].sort());
});

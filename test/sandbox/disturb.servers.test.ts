import { Webhook } from 'standardwebhooks';
import { beforeEach, describe, expect, test } from 'vitest';
import { forFile } from '../support/for-file.ts';
import { startReceiver } from './support/receiver.ts';
import { type AnyRecord, startService } from './support/service.ts';

const service = await forFile(startService({ companies: 2, documents: 6, intervalDays: 0 }));
await service.enableWebhooks();
const receiver = await forFile(startReceiver());
const { secret } = await service.control<{ secret: string }>('POST', '/sandbox/endpoints', {
  url: receiver.url,
});
beforeEach(() => {
  receiver.deliveries.length = 0;
});

const disturb = (body: object) => service.control('POST', '/sandbox/disturb', body);
const fire = async (count: number) => {
  const { events } = await service.control<AnyRecord>('POST', '/sandbox/random', {
    count,
    types: ['createDocument'],
  });
  await service.quiet();
  return events as number;
};
const ids = () => receiver.deliveries.map(({ headers }) => String(headers['webhook-id']));
const status = async () => (await service.control<AnyRecord>('GET', '/sandbox/status')).deliveries;

describe('disturbed deliveries', () => {
  test('repeat the same message as duplicates, and each copy is signed and verifiable', async () => {
    const before = await status();
    await disturb({ duplicate: 1 });
    const events = await fire(50);
    expect(receiver.deliveries).toHaveLength(2 * events);
    expect(new Set(ids()).size).toBe(events);
    for (const { headers, body } of receiver.deliveries) {
      expect(() => new Webhook(secret).verify(body, headers as Record<string, string>)).not.toThrow();
    }
    expect((await status()).duplicates - before.duplicates).toBe(events);
  });

  test('can be dropped, which is counted and listed', async () => {
    const before = await status();
    await disturb({ drop: 0.5, seed: 9 });
    const events = await fire(80);
    const { dropped, delivered } = await status();
    const lost = dropped - before.dropped;
    expect(lost).toBeGreaterThan(20);
    expect(lost).toBeLessThan(60);
    expect(delivered - before.delivered).toBe(events - lost);
    expect(receiver.deliveries).toHaveLength(events - lost);
    const { deliveries } = await service.control<AnyRecord>(
      'GET',
      '/sandbox/deliveries?state=dropped&limit=10000',
    );
    expect(deliveries).toHaveLength(dropped);
    for (const { eventId } of deliveries) expect(ids()).not.toContain(eventId);
  });

  test('arrive out of order if they are shuffled, and all of them arrive', async () => {
    const [last] = (await service.eventsAfter(0)).slice(-1);
    await disturb({ shuffle: true });
    const events = await fire(200);
    const written = (await service.eventsAfter(last?.seq ?? 0)).map(({ id }) => id);
    expect(written).toHaveLength(events);
    expect([...ids()].sort()).toEqual([...written].sort());
    const moved = ids().filter((id, index) => Math.abs(written.indexOf(id) - index) > 16);
    expect(moved.length).toBeGreaterThan(events / 2);
  });

  test('arrive within the bounds of their delay', async () => {
    await disturb({ delayMs: [300, 600] });
    const begun = Date.now();
    await fire(20);
    expect(receiver.deliveries).toHaveLength(20);
    for (const { at } of receiver.deliveries) expect(at - begun).toBeGreaterThanOrEqual(300);
  });

  test('can be limited to one endpoint, and {} ends the disturbance', async () => {
    const other = await startReceiver();
    const { id } = await service.control<{ id: string }>('POST', '/sandbox/endpoints', { url: other.url });
    await disturb({});
    await disturb({ endpointId: id, drop: 1 });
    await fire(10);
    expect([receiver.deliveries.length, other.deliveries.length]).toEqual([10, 0]);
    await disturb({ endpointId: id });
    await fire(10);
    expect([receiver.deliveries.length, other.deliveries.length]).toEqual([20, 10]);
    await service.control('DELETE', `/sandbox/endpoints/${id}`);
    await other.close();
  });

  test('of an endpoint that never existed are answered with 404', async () => {
    await expect(disturb({ endpointId: 'ep_nobody', drop: 1 })).rejects.toThrow('404');
    const asked = service.control('GET', '/sandbox/deliveries?endpointId=ep_nobody');
    await expect(asked).rejects.toThrow('404');
  });

  test.each([{ duplicate: 2 }, { drop: -1 }, { delayMs: [5, 1] }, { unknown: true }])(
    'refuses %j',
    async (body) => {
      await expect(disturb(body)).rejects.toThrow('400');
    },
  );
});

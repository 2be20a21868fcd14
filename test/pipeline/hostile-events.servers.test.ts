import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { recordEvents } from '../../db/events/record-events.ts';
import { deliverBody } from '../support/deliver.ts';
import { delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { nested } from '../support/nested.ts';
import { startPipeline } from '../support/pipeline.ts';
import { until } from '../support/poll.ts';

const pipeline = await forFile(startPipeline({ size: { companies: 1, documents: 10, intervalDays: 1 } }));
await pipeline.backfill();

interface Kept extends Record<string, unknown> {
  type: string;
  outcome: string;
  error: string | null;
  payload: unknown;
  body: string | null;
}

/** Reads an event from the journal, once its outcome is final. */
async function kept(id: string): Promise<Kept> {
  return await until(`event ${id} has its outcome`, async () => {
    const { rows } = await pipeline.warehouse.db.execute<Kept>(sql`
      select type, outcome, error, payload::text as payload, convert_from(body, 'UTF8') as body
      from metersync.events where id = ${id} and outcome <> 'pending'`);
    return rows[0];
  });
}

const sound = '2026-01-01T00:00:00';
const created = (updated: string, more: object = {}) =>
  JSON.stringify(documentEvent('created', randomUUID(), updated, more));

// test/db/record-events.servers.test.ts has every kind of them.
const dead: [row: string, what: string, body: string][] = [
  ['49', 'text that is not JSON', 'hello'],
  [
    '50',
    'objects 100,000 deep in a document',
    created(sound, { deep: 'DEEP' }).replace('"DEEP"', nested.object),
  ],
  ['54', 'an escaped NUL', created(sound, { note: 'a\u0000b' })],
  ['55', 'the 30th of February', created('2026-02-30T00:00:00')],
];

test.each(dead)(
  '%s: %s is accepted, and dead with its reason and its bytes; the other events are applied',
  async (_row, _what, body) => {
    const { service } = pipeline;
    const [company] = await service.read<{ id: string }[]>('/company');
    const beside = service.change({ type: 'createConnection', companyId: company?.id });
    const { id, status } = await deliverBody(pipeline, body);
    expect(status).toBe(204);
    expect(await kept(id)).toMatchObject({
      outcome: 'dead',
      error: expect.stringMatching(/\S/),
      payload: null,
      body,
    });
    const [connectionId] = await beside;
    await until('its neighbour is in the warehouse', async () => {
      const { rows } = await pipeline.warehouse.db.execute(
        sql`select from utility.connections where id = ${connectionId}::uuid`,
      );
      return rows.length === 1;
    });
  },
);

test.each(Object.values(nested))(
  '50: recording an event that nests 100,000 deep takes less than 50 ms of work (%#)',
  async (body) => {
    const work: number[] = [];
    while (work.length < 10) {
      const before = process.threadCpuUsage();
      expect(await recordEvents(pipeline.warehouse.db, [delivery(body)])).toMatchObject({ dead: 1 });
      const { user, system } = process.threadCpuUsage(before);
      work.push((user + system) / 1_000);
    }
    // The least of several, as other work of this thread adds to some.
    expect(Math.min(...work)).toBeLessThan(50);
  },
);

test('51: keys of prototypes are ordinary fields', async () => {
  const body = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
  const { id, status } = await deliverBody(pipeline, body);
  expect(status).toBe(204);
  const event = await kept(id);
  expect([event.outcome, JSON.parse(String(event.payload))]).toEqual(['ignored', JSON.parse(body)]);
  expect(await pipeline.audit()).toMatchObject({ differences: 0 });
});

test('52: the last of two equal keys counts', async () => {
  const { id, status } = await deliverBody(pipeline, '{"eventType":"first.v1","eventType":"last.v1"}');
  expect(status).toBe(204);
  expect(await kept(id)).toMatchObject({ type: 'last.v1', payload: '{"eventType": "last.v1"}' });
});

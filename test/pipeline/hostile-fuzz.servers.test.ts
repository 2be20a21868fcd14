import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { limits } from '../../contract/limits.ts';
import { cases } from '../support/cases.ts';
import { deliverBody } from '../support/deliver.ts';
import { forFile } from '../support/for-file.ts';
import { hostileJson, hostileVariant } from '../support/hostile-json.ts';
import { startHostileService } from '../support/hostile-service.ts';
import { startPipeline } from '../support/pipeline.ts';

const size = { companies: 2, documents: 12, intervalDays: 1 };
const pipeline = await forFile(startPipeline({ size, parts: ['receiver'] }));
/** The proxy between the worker and the service. */
const proxy = await forFile(startHostileService(pipeline.service.apiUrl));
// There is no cap, because there may be more hostile records than a run tombstones by default.
await pipeline.run('worker', {
  SERVICE_URL: proxy.url,
  DELETES_CAP_PERCENT: '100',
  DELETES_CAP_ROWS: '1000000',
});
await pipeline.backfill();
await pipeline.service.random(20, 7);
await pipeline.settled();

/** Makes an event of each type that the service has sent, with hostile JSON in one place. */
async function variants(): Promise<fc.Arbitrary<string>> {
  const sent = await pipeline.service.events();
  const ofTypes = [...new Map(sent.map(({ type, payload }) => [type, payload])).values()];
  expect(ofTypes.length).toBeGreaterThan(3);
  // Meter and range are not changed, because the worker requests them from the service.
  const kept = (payload: object) => ('meterId' in payload ? ['meterId', 'start', 'end'] : []);
  return fc.oneof(
    hostileJson,
    ...ofTypes.map((payload) => hostileVariant(payload, kept(payload))),
    hostileVariant({ eventType: 'planet.moved.v9', to: { orbit: [1] } }),
  );
}

/** Changes whose events are about existing genuine records. */
const genuineChanges = ['createDocument', 'reprocessDocument', 'updateConnection', 'syncIntervals'];

/** Delivers all bodies, several at once, and returns the ids of the acknowledged events. */
async function deliverAll(bodies: readonly string[]): Promise<string[]> {
  const acknowledged: string[] = [];
  const waiting = [...bodies];
  const sender = async (): Promise<void> => {
    for (let body = waiting.pop(); body !== undefined; body = waiting.pop()) {
      const { id, status } = await deliverBody(pipeline, body);
      expect(status).toBe(204);
      acknowledged.push(id);
    }
  };
  await Promise.all(Array.from({ length: 24 }, sender));
  return acknowledged;
}

/** Reads the outcome of each event, and why. */
async function outcomes(): Promise<Map<string, readonly [string, string, string | null]>> {
  const { rows } = await pipeline.warehouse.db.execute<{
    id: string;
    type: string;
    outcome: string;
    error: string | null;
  }>(sql`select id, type, outcome, error from metersync.events`);
  return new Map(rows.map(({ id, type, outcome, error }) => [id, [outcome, type, error]]));
}

/** Checks that every genuine event since `before` is settled, others are recorded, and none is pending. */
async function expectSettled(before: ReadonlySet<string>, others: readonly string[]): Promise<void> {
  const became = await outcomes();
  const genuine = (await pipeline.service.delivered()).filter((id) => !before.has(id));
  expect(genuine.length).toBeGreaterThan(10);
  const settled = ['applied', 'superseded'];
  const ends = genuine.map((id) => became.get(id) ?? ['lost']);
  expect(ends.filter(([outcome]) => !settled.includes(outcome))).toEqual([]);
  expect(others.filter((id) => !became.has(id))).toEqual([]);
  expect([...became.values()].filter(([outcome]) => outcome === 'pending')).toEqual([]);
}

test('every genuine event is applied in spite of signed hostile events, and no event is pending at the end', {
  timeout: 150_000,
}, async () => {
  const hostile = fc
    .array(await variants(), { minLength: 120, maxLength: 150 })
    .map((bodies) => bodies.filter((body) => Buffer.byteLength(body) <= limits.webhookBodyBytesMax));
  let round = 0;
  await fc.assert(
    fc.asyncProperty(hostile, fc.nat(), async (bodies, seed) => {
      round += 1;
      const types = Array.from({ length: cases(700, 1_500) }, (_, n) =>
        JSON.stringify({ eventType: `z${round}.${n}`, n }),
      );
      const before = new Set(await pipeline.service.delivered());
      const [ids, events] = await Promise.all([
        deliverAll(types.toSpliced(types.length / 2, 0, ...bodies)),
        pipeline.service.random(25, seed, genuineChanges),
      ]);
      expect(events).toBeGreaterThan(10);
      await pipeline.settled(120_000);
      await expectSettled(before, ids);
    }),
    { numRuns: 1, endOnFailure: true },
  );
});

/** Makes events about invented documents with these ids, and the records that the proxy adds. */
async function inventedDocuments(ids: readonly string[]) {
  const sent = await pipeline.service.events();
  const gone = new Set(
    sent.flatMap(({ type, payload }) => (type === 'document.deleted.v2' ? [payload.id] : [])),
  );
  const event = sent.findLast(({ type, payload }) => type === 'document.updated.v2' && !gone.has(payload.id));
  const record = await pipeline.service.read<{ updated: string }>(`/document/${event?.payload.id}`);
  const { updated } = record;
  return {
    bodies: ids.map((id) => JSON.stringify({ ...event?.payload, id, updated })),
    documents: new Map(ids.map((id) => [id, { ...record, id }])),
  };
}

test('every event is applied in spite of hostile records, and the rows equal the records of the service at the end', {
  timeout: 400_000,
}, async () => {
  const { backfill, service, settled } = pipeline;
  const uuids = fc.uniqueArray(fc.uuid(), { minLength: 12, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(fc.nat(), uuids, async (seed, invented) => {
      const { bodies, documents } = await inventedDocuments(invented);
      const before = new Set(await service.delivered());
      proxy.arm({ seed, documents });
      const [ids] = await Promise.all([deliverAll(bodies), service.random(25, seed, genuineChanges)]);
      await settled(120_000);
      await expectSettled(before, ids);
      expect(['complete', 'partial', 'suspect']).toContain(await backfill());
      await settled(120_000);
      expect(proxy.hostile.pages).toBeGreaterThan(10);
      expect(proxy.hostile.documents).toBeGreaterThanOrEqual(bodies.length);

      proxy.disarm();
      await backfill();
      await settled(120_000);
      const { resources, examples } = await pipeline.audit();
      // Hostile records are tombstoned as absent, and hostile readings are removed.
      const kinds = Object.entries(resources).map(([kind, { missing, different, extra }]) => {
        return [kind, missing + different + extra];
      });
      expect(
        kinds.filter(([, differences]) => differences !== 0),
        JSON.stringify(examples.slice(0, 5)),
      ).toEqual([]);
    }),
    { numRuns: 1, endOnFailure: true },
  );
});

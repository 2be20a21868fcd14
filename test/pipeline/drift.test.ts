import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';

let pipeline: Pipeline;
beforeAll(async () => {
  pipeline = await startPipeline({ size: { companies: 2, documents: 320, intervalDays: 1 } });
  // Slow pages, so that the listings move between them, and copies of events that come late and in any order.
  for (const path of ['/document/company', '/usage/company']) {
    await pipeline.service.fault({ kind: 'latency', path, ms: [40, 80] });
  }
  await pipeline.service.disturb({ duplicate: 0.1, shuffle: true, delayMs: [0, 1_500] });
});
afterAll(() => pipeline?.stop());

const timeout = 150_000;
/** More would only take longer to settle. */
const changesMax = 120;

/** A backfill during which the service changes all the while; returns how it ended, and how many events there were. */
async function backfillUnder(
  types: readonly string[],
  seed: number,
): Promise<[state: string, events: number]> {
  let over = false;
  const run = pipeline.backfill().finally(() => {
    over = true;
  });
  let events = 0;
  for (let batch = 0; !over && batch < changesMax; batch++)
    events += await pipeline.service.random(1, seed + batch, types);
  return [await run, events];
}

const changes = ['createDocument', 'reprocessDocument', 'syncIntervals', 'updateConnection', 'assignSites'];

test('a first backfill of a service that grows and changes meanwhile ends, with the events, in its state', {
  timeout,
}, async () => {
  const [state, events] = await backfillUnder(changes, 1_000);
  // Three passes over a listing that never stands still are suspect, and say so; nothing is lost by it.
  expect(['complete', 'suspect']).toContain(state);
  expect(events).toBeGreaterThan(20);
  await pipeline.settled();
  expect(await pipeline.audit()).toMatchObject({ differences: 0, examples: [] });
});

test('a backfill during which records are deleted too buries none that lives', { timeout }, async () => {
  const [, events] = await backfillUnder([...changes, 'deleteDocument', 'deleteDocument'], 100_000);
  expect(events).toBeGreaterThan(20);
  await pipeline.settled();
  expect(await pipeline.audit()).toMatchObject({ differences: 0, examples: [] });
  const deleted = await pipeline.warehouse.db.execute<{ n: number }>(
    sql`select count(*)::int as n from utility.documents where deleted_reason = 'event'`,
  );
  expect(deleted.rows[0]?.n).toBeGreaterThan(3);
});

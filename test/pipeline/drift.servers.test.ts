import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { cases } from '../support/cases.ts';
import { forFile } from '../support/for-file.ts';
import { startPipeline } from '../support/pipeline.ts';

const pipeline = await forFile(
  startPipeline({ size: { companies: 2, documents: cases(220, 320), intervalDays: 1 } }),
);
// Pages are slow, so that the listings move between them. Events are also duplicated, late and in any order.
for (const path of ['/document/company', '/usage/company']) {
  await pipeline.service.fault({ kind: 'latency', path, ms: [40, 80] });
}
await pipeline.service.disturb({ duplicate: 0.1, shuffle: true, delayMs: [0, 1_500] });

const timeout = 150_000;
/** The least and the largest number of changes: few prove little, and more take longer to settle. */
const changesLeast = 40;
const changesMax = cases(60, 120);

/** Runs a backfill while the service changes. Returns how the backfill ended and the number of events. */
async function backfillUnder(
  types: readonly string[],
  seed: number,
): Promise<[state: string, events: number]> {
  let over = false;
  const run = pipeline.backfill().finally(() => {
    over = true;
  });
  let events = 0;
  for (let batch = 0; batch < changesLeast || (!over && batch < changesMax); batch++)
    events += await pipeline.service.random(1, seed + batch, types);
  return [await run, events];
}

const changes = ['createDocument', 'reprocessDocument', 'syncIntervals', 'updateConnection', 'assignSites'];

test('a first backfill of a changing service, together with its events, ends in the state of the service', {
  timeout,
}, async () => {
  const [state, events] = await backfillUnder(changes, 1_000);
  // Three passes over a listing that keeps changing make a run suspect, but nothing is lost.
  expect(['complete', 'suspect']).toContain(state);
  expect(events).toBeGreaterThan(20);
  await pipeline.settled();
  expect(await pipeline.audit()).toMatchObject({ differences: 0, examples: [] });
});

test('a backfill during deletions tombstones no live record', { timeout }, async () => {
  const [, events] = await backfillUnder([...changes, 'deleteDocument', 'deleteDocument'], 100_000);
  expect(events).toBeGreaterThan(20);
  await pipeline.settled();
  expect(await pipeline.audit()).toMatchObject({ differences: 0, examples: [] });
  const deleted = await pipeline.warehouse.db.execute<{ n: number }>(
    sql`select count(*)::int as n from utility.documents where deleted_reason = 'event'`,
  );
  expect(deleted.rows[0]?.n).toBeGreaterThan(3);
});

test('the first event of a company makes the company be read', { timeout }, async () => {
  const { service, warehouse } = pipeline;
  const [companyId] = await service.change({ type: 'createCompany', name: 'Newcomer' });
  await service.change({ type: 'createConnection', companyId });
  await pipeline.settled();
  const runs = await warehouse.db.execute(sql`
    select distinct run_id, state from metersync.runs where company_id = ${companyId}::uuid`);
  expect(runs.rows).toEqual([{ run_id: companyId, state: 'complete' }]);
  expect(await pipeline.audit()).toMatchObject({ differences: 0 });
});

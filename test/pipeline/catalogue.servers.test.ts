import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { cases } from '../support/cases.ts';
import { startPipeline } from '../support/pipeline.ts';

test('the warehouse becomes equal to a service without single documents, usage of a document and a list of companies', async () => {
  const pipeline = await startPipeline({
    size: { companies: 2, documents: 110, intervalDays: 1 },
    endpoints: { document: null, documentUsage: null, companies: null },
  });
  onTestFinished(() => pipeline.stop());
  const { service } = pipeline;
  const companies = (await service.read<{ id: string }[]>('/company')).map(({ id }) => id);
  expect(await pipeline.backfill(companies)).toBe('complete');
  await service.disturb({ duplicate: 0.2, shuffle: true, delayMs: [0, 800] });
  await service.random(cases(60, 120), 11);
  await pipeline.settled();
  expect(await pipeline.audit()).toMatchObject({ differences: 0, examples: [] });
  const live = await pipeline.warehouse.db.execute<{ n: number }>(
    sql`select count(*)::int as n from utility.documents where deleted_at is null`,
  );
  expect(live.rows[0]?.n).toBe((await service.status()).documents);
});

import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { notePages } from '../../db/backfill/manifest.ts';
import { finishRun, noteProgress, startRun } from '../../db/backfill/runs.ts';
import { readRunProgress } from '../../db/read/runs.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

test('the progress of a run counts rows written and pages read, for each company under way', async () => {
  const { db } = warehouse;
  const runId = randomUUID();
  expect(await readRunProgress(db, runId)).toMatchObject({ state: null, rows: 0, running: [], failed: [] });

  const ids = [randomUUID(), randomUUID(), randomUUID()].sort();
  const [listed = '', metered = '', done = ''] = ids;
  for (const [at, id] of ids.entries()) {
    await db.execute(sql`insert into utility.companies (id, name) values (${id}::uuid, ${`Company ${at}`})`);
  }
  await startRun(db, { runId, companyId: null, resource: null });

  const documents = { runId, companyId: listed, resource: 'documents' } as const;
  const read = { pages: 2, passes: 1, reportedTotal: 20, distinctIds: 20, tombstoned: 0, rejected: 0 };
  const meters = { ...documents, resource: 'meters' };
  await startRun(db, meters);
  await finishRun(db, meters, 'complete', { counts: { ...read, inserted: 20, changed: 0, unchanged: 0 } });
  await startRun(db, documents);
  const page = (asked: number, count: number) =>
    notePages(db, { ...documents, pass: 1 }, [
      {
        asked,
        currentPage: asked,
        total: 250,
        hasNext: true,
        ids: Array.from({ length: count }, () => randomUUID()),
        readAt: new Date().toISOString(),
      },
    ]);
  await page(1, 100);
  await page(2, 60);

  const intervals = { runId, companyId: metered, resource: 'intervals' };
  await startRun(db, intervals);
  for (const [meterId, fetched] of [
    ['m1', true],
    ['m2', false],
    ['m3', false],
  ] as const) {
    await db.execute(sql`insert into utility.meters (id, company_id) values (${meterId}, ${metered}::uuid)`);
    if (!fetched) continue;
    await db.execute(sql`insert into metersync.interval_fetches (meter_id, fetched, updated_at)
      values (${meterId}, '{(,)}', clock_timestamp())`);
  }
  await noteProgress(db, intervals, {
    pages: 5,
    inserted: 400,
    changed: 50,
    unchanged: 50,
    // This is a quarter of the readings of the second meter.
    distinctIds: 250,
    reportedTotal: 1_000,
  });

  const over = { runId, companyId: done, resource: 'intervals' };
  await startRun(db, over);
  await finishRun(db, over, 'partial', { error: '1 meters: SERVICE_ACCESS_DENIED: no' });

  expect(await readRunProgress(db, runId)).toMatchObject({
    state: 'running',
    companies: 3,
    companiesDone: 1,
    rows: 20 + 160 + 500,
    running: [
      { name: 'Company 0', resource: 'documents', step: 3, done: 160, of: 250, unit: 'records' },
      { name: 'Company 1', resource: 'intervals', step: 5, done: 1.25, of: 3, unit: 'meters' },
    ],
    failed: [{ name: 'Company 2', resource: 'intervals', state: 'partial' }],
  });
});

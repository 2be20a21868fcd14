import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { warehouseNow } from '../../db/catch-up.ts';
import { recordEvents } from '../../db/record/record-events.ts';
import { concludeRun, countAbsent, finishRun, startRun, tombstoneAbsent } from '../../db/runs.ts';
import { company, delivery, documentEvent } from '../support/events.ts';
import { rowOf, writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
beforeAll(async () => {
  warehouse = await createWarehouse();
});
afterAll(() => warehouse.drop());

const now = () => warehouseNow(warehouse.db);
const updated = '2026-05-01T00:00:00.000001';

test('absent from a pass is what it did not show and nothing else touched since it began', async () => {
  const write = async (id: string, companyId = company.id) =>
    await writeRecords(warehouse, 'documents', [{ id, updated }], { readAt: await now(), companyId });
  const named = ['known', 'seen', 'told', 'read', 'fresh', 'buried', 'elsewhere'] as const;
  const ids = Object.fromEntries(named.map((name) => [name, randomUUID()])) as Record<
    (typeof named)[number],
    string
  >;
  for (const name of ['known', 'seen', 'told', 'read', 'buried'] as const) await write(ids[name]);
  await write(ids.elsewhere, randomUUID());
  await warehouse.db.execute(
    sql`update utility.documents set deleted_at = now(), deleted_reason = 'event' where id = ${ids.buried}::uuid`,
  );
  const began = await now();
  await recordEvents(warehouse.db, [delivery(documentEvent('updated', ids.told, updated))]);
  const again = { id: ids.read, updated, note: 'read again' };
  await writeRecords(warehouse, 'documents', [again], { readAt: await now(), companyId: company.id });
  await write(ids.fresh);

  const seen = [ids.seen];
  expect(await countAbsent(warehouse.db, 'documents', company.id, seen, began)).toEqual({
    live: 5,
    absent: 1,
  });
  expect(await tombstoneAbsent(warehouse.db, 'documents', company.id, seen, began)).toBe(1);
  expect(await rowOf(warehouse, 'documents', ids.known)).toMatchObject({ deleted_reason: 'absent' });
  for (const name of ['seen', 'told', 'read', 'fresh', 'elsewhere'] as const) {
    expect([name, await rowOf(warehouse, 'documents', ids[name])]).toMatchObject([
      name,
      { deleted_at: null },
    ]);
  }
});

describe('a run', () => {
  test.each([
    [['complete', 'complete'], 'complete'],
    [['complete', 'suspect'], 'suspect'],
    [['complete', 'failed'], 'partial'],
    [['suspect', 'failed', 'complete'], 'partial'],
    [['failed', 'failed'], 'failed'],
    [['complete', 'partial'], 'partial'],
  ] as const)('whose parts end %j ends %s, and sums them up', async (parts, state) => {
    const runId = randomUUID();
    await startRun(warehouse.db, { runId, companyId: null, resource: null });
    for (const [at, part] of parts.entries()) {
      const key = { runId, companyId: company.id, resource: `part ${at}` };
      await startRun(warehouse.db, key);
      const counts = { pages: 1, passes: 1, totalSaid: 9, distinctIds: 9, inserted: 2, changed: 3 };
      await finishRun(warehouse.db, key, part, {
        counts: { ...counts, unchanged: 4, tombstoned: 1, rejected: 0 },
        ...(part === 'complete' ? {} : { error: `why ${part}` }),
      });
    }
    expect(await concludeRun(warehouse.db, runId)).toBe(state);
    const [run] = (
      await warehouse.db.execute(sql`select rows_inserted::int as inserted, pages, error, finished_at is not null as over
        from metersync.runs where run_id = ${runId}::uuid and company_id is null`)
    ).rows;
    const reasons = [...new Set(parts.filter((part) => part !== 'complete'))].map((part) => `why ${part}`);
    expect(run).toEqual({
      inserted: 2 * parts.length,
      pages: parts.length,
      error: reasons.length === 0 ? null : expect.stringContaining(reasons[0] ?? ''),
      over: true,
    });
  });
});

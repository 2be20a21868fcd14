import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { finishRun, startRun } from '../../db/backfill/runs.ts';
import { recordEvents } from '../../db/events/record-events.ts';
import { readHealth } from '../../db/read/health.ts';
import { readStatus } from '../../db/read/status.ts';
import { company, delivery, documentEvent } from '../support/events.ts';
import { writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
beforeAll(async () => {
  warehouse = await createWarehouse();
});
afterAll(() => warehouse.drop());
beforeEach(async () => {
  for (const table of ['metersync.journal', 'metersync.stale_records', 'metersync.runs', 'utility.companies'])
    await warehouse.db.execute(sql.raw(`delete from ${table}`));
});

async function part(resource: string, state: 'complete' | 'failed', error?: string): Promise<void> {
  const key = { runId: randomUUID(), companyId: company.id, resource };
  await startRun(warehouse.db, key);
  await finishRun(warehouse.db, key, state, error === undefined ? {} : { error });
}

test('an empty warehouse is healthy, but not loaded', async () => {
  expect(await readHealth(warehouse.db)).toMatchObject({
    loaded: false,
    oldestDueSeconds: null,
    dead: 0,
    missingLately: 0,
    parked: [],
    runs: { full: { running: 0, last: null }, reconcile: { running: 0, last: null } },
  });
});

test('a run that is under way or failed has not loaded the warehouse', async () => {
  const key = { runId: randomUUID(), companyId: null, resource: null };
  await startRun(warehouse.db, key);
  expect(await readHealth(warehouse.db)).toMatchObject({ loaded: false, runs: { full: { running: 1 } } });
  await finishRun(warehouse.db, key, 'failed', { error: 'SERVICE_KEY_REFUSED: no' });
  expect(await readHealth(warehouse.db)).toMatchObject({ loaded: false });
  await finishRun(warehouse.db, key, 'partial', {});
  expect(await readHealth(warehouse.db)).toMatchObject({
    loaded: true,
    runs: { full: { running: 0, last: { runId: key.runId, state: 'partial' } } },
  });
});

test('due work has an age; backed off work has none', async () => {
  const { db } = warehouse;
  await recordEvents(db, [delivery(documentEvent('created', randomUUID(), '2026-03-01T00:00:00.000001'))]);
  await db.execute(sql`update metersync.stale_records set due_at = now() - interval '5 minutes'`);
  const { oldestDueSeconds } = await readHealth(db);
  expect(oldestDueSeconds).toBeGreaterThan(299);
  expect(oldestDueSeconds).toBeLessThan(360);
  await db.execute(sql`update metersync.stale_records set due_at = now() + interval '5 minutes'`);
  expect(await readHealth(db)).toMatchObject({ oldestDueSeconds: null });
});

test('parked are events and the last parts of live companies, until a later run reads them', async () => {
  const { db } = warehouse;
  await db.execute(sql`insert into utility.companies (id) values (${company.id})`);
  await part('documents', 'failed', 'SERVICE_ACCESS_DENIED: no');
  await part('meters', 'failed', 'SERVICE_UNREACHABLE: later');
  await part('companies', 'failed', 'SERVICE_ACCESS_DENIED: not of a company');
  await recordEvents(db, [delivery(documentEvent('created', randomUUID(), '2026-03-01T00:00:00.000001'))]);
  await db.execute(
    sql`update metersync.stale_records set error_code = 'SERVICE_ACCESS_DENIED', error = 'no'`,
  );
  expect(await readHealth(db)).toMatchObject({
    parked: [{ code: 'SERVICE_ACCESS_DENIED', events: 1, parts: 1 }],
  });
  await part('documents', 'complete');
  await db.execute(sql`delete from metersync.stale_records`);
  expect(await readHealth(db)).toMatchObject({ parked: [] });
  await part('documents', 'failed', 'SERVICE_ACCESS_DENIED: no');
  await db.execute(sql`update utility.companies set deleted_at = now(), deleted_reason = 'absent'`);
  expect(await readHealth(db)).toMatchObject({ parked: [] });
});

test('an event that cannot be applied is dead', async () => {
  await recordEvents(warehouse.db, [delivery({ eventType: 'document.created.v2' })]);
  expect(await readHealth(warehouse.db)).toMatchObject({ dead: 1 });
});

test('a dead event counts until a later state of its record is written', async () => {
  const { db } = warehouse;
  const id = randomUUID();
  // Postgres holds no NUL.
  const event = documentEvent('updated', id, '2026-03-01T00:00:00.000001');
  await recordEvents(db, [delivery({ ...event, note: '\u0000' })]);
  expect(await readHealth(db)).toMatchObject({ dead: 1 });
  const read = { companyId: company.id };
  // A page that was read before the event does not count.
  await writeRecords(warehouse, 'documents', [{ id, updated: '2026-03-01T00:00:00.000001' }], read);
  expect(await readHealth(db)).toMatchObject({ dead: 1 });
  const readAt = new Date(Date.now() + 1_000).toISOString();
  await writeRecords(warehouse, 'documents', [{ id, updated: '2026-03-02T00:00:00.000001' }], {
    ...read,
    readAt,
  });
  expect(await readHealth(db)).toMatchObject({ dead: 0 });
  expect((await readStatus(db)).events).toMatchObject({ dead: 1 });
});

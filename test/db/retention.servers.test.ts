import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { companyResources } from '../../contract/endpoints.ts';
import type { DeliveredEvent } from '../../contract/event.ts';
import { notePages } from '../../db/backfill/manifest.ts';
import { dropOldParts } from '../../db/backfill/retention.ts';
import { concludeRun, failRunAndParts } from '../../db/backfill/run-end.ts';
import { finishRun, startRun } from '../../db/backfill/runs.ts';
import { dropPayloads, type PayloadsDropped } from '../../db/events/journal.ts';
import { recordEvents } from '../../db/events/record.ts';
import { readRunProgress } from '../../db/read/runs.ts';
import { readStatus } from '../../db/read/status.ts';
import { company, connectionEvent, delivery, documentEvent } from '../support/events.ts';
import { forFile } from '../support/for-file.ts';
import { settleAs } from '../support/settled.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const rows = async (query: ReturnType<typeof sql>) => (await warehouse.db.execute(query)).rows;
const event = () => delivery(documentEvent('created', randomUUID(), '2026-01-01T00:00:00.000001'));
/** Records an event so that the journal has it as if it had arrived `days` days ago. */
async function aged(given: DeliveredEvent, outcome: string, days: number): Promise<string> {
  await recordEvents(warehouse.db, [given]);
  if (outcome === 'applied' || outcome === 'superseded' || outcome === 'missing')
    await settleAs(warehouse.db, outcome, sql`id = ${given.id}`);
  if (outcome === 'ignored')
    await warehouse.db.execute(
      sql`update metersync.journal set outcome = 'ignored', queue = null, due_at = null where id = ${given.id}`,
    );
  await warehouse.db.execute(sql`update metersync.journal
    set received_at = clock_timestamp() - make_interval(days => ${days}::int) where id = ${given.id}`);
  return given.id;
}
const has = async (id: string) =>
  (
    await rows(sql`select coalesce(payload::text, convert_from(body, 'UTF8')) is not null as bytes,
      payload_dropped_at is not null as dropped from metersync.events where id = ${id}`)
  )[0];

describe('payloads of the journal', () => {
  test('are dropped in batches for settled events older than the retention, and all others stay', async () => {
    const old: string[] = [];
    for (const outcome of ['applied', 'superseded', 'ignored']) {
      old.push(await aged(event(), outcome, 11), await aged(event(), outcome, 400));
    }
    const kept = [await aged(event(), 'applied', 9)];
    for (const outcome of ['pending', 'missing']) kept.push(await aged(event(), outcome, 400));
    kept.push(await aged(delivery('{"eventType":'), 'dead', 400));
    let after: string | null = null;
    const counts: number[] = [];
    do {
      const batch: PayloadsDropped = await dropPayloads(warehouse.db, { days: 10, limit: 4, after });
      counts.push(batch.dropped);
      after = batch.last;
    } while (after !== null);
    // The oldest events come first. Each batch examines four events, and some of them keep their payloads.
    expect(counts).toEqual([3, 2, 1]);
    for (const id of old) expect(await has(id)).toEqual({ bytes: false, dropped: true });
    for (const id of kept) expect(await has(id)).toEqual({ bytes: true, dropped: false });
  });

  test('are dropped without a change to any other column of the event', async () => {
    const given = delivery(
      connectionEvent('created', randomUUID(), '2026-01-01T00:00:00.000001', 'CONNECTED'),
    );
    await aged(given, 'applied', 400);
    const read = () =>
      rows(sql`select to_jsonb(e) - '{payload,payload_dropped_at}'::text[] as row from metersync.events e
        where id = ${given.id}`);
    const before = await read();
    await dropPayloads(warehouse.db, { days: 10, limit: 100 });
    expect(await read()).toEqual(before);
  });

  test('are not needed to recognise a repeated delivery', async () => {
    const id = randomUUID();
    const given = delivery(documentEvent('created', id, '2026-01-01T00:00:00.000009'));
    await aged(given, 'applied', 400);
    await dropPayloads(warehouse.db, { days: 10, limit: 100 });
    await warehouse.db.execute(sql`update utility.documents set updated = null where id = ${id}`);
    expect(await recordEvents(warehouse.db, [given])).toMatchObject({ fresh: 0, duplicates: 1 });
    expect(await has(given.id)).toEqual({ bytes: false, dropped: true });
    expect(await rows(sql`select updated from utility.documents where id = ${id}`)).toEqual([
      { updated: null },
    ]);
  });

  test('are dropped once by concurrent runs', async () => {
    const old: string[] = [];
    for (let at = 0; at < 40; at++) old.push(await aged(event(), 'applied', 400));
    const counts = await Promise.all(
      Array.from({ length: 4 }, () => dropPayloads(warehouse.db, { days: 10, limit: 10 })),
    );
    const rest = await dropPayloads(warehouse.db, { days: 10, limit: 100 });
    expect([...counts, rest].reduce((sum, { dropped }) => sum + dropped, 0)).toBe(40);
    for (const id of old) expect(await has(id)).toEqual({ bytes: false, dropped: true });
  });
});

describe('parts of runs', () => {
  const counts = {
    pages: 1,
    passes: 1,
    reportedTotal: 2,
    distinctIds: 2,
    inserted: 0,
    changed: 0,
    unchanged: 2,
  };
  /** Creates a full run that ended the given number of days ago, with its documents in the given state. */
  async function run(days: number, documents: 'complete' | 'failed'): Promise<string> {
    const { db } = warehouse;
    const runId = randomUUID();
    await startRun(db, { runId, companyId: null, resource: null });
    for (const resource of companyResources) {
      const part = { runId, companyId: company.id, resource };
      await startRun(db, part);
      await finishRun(db, part, resource === 'documents' ? documents : 'complete', {
        counts: { ...counts, tombstoned: 0, rejected: 0, requests: 3 },
        ...(resource === 'documents' && documents === 'failed' ? { error: 'SERVICE_ACCESS_DENIED: no' } : {}),
      });
    }
    await concludeRun(db, runId);
    await db.execute(sql`update metersync.runs
      set started_at = started_at - make_interval(days => ${days}::int),
        finished_at = finished_at - make_interval(days => ${days}::int)
      where run_id = ${runId}::uuid`);
    return runId;
  }
  const kept = async (runId: string) =>
    (
      await rows(sql`select resource from metersync.runs
        where run_id = ${runId}::uuid and resource is not null order by resource`)
    ).map(({ resource }) => resource);

  test('are dropped once they are old and a later run has read them completely, and the sums of the run stay', async () => {
    const { db } = warehouse;
    await db.execute(sql`insert into utility.companies (id, raw) values (${company.id}::uuid, '{}')`);
    const first = await run(200, 'complete');
    const second = await run(150, 'failed');
    const third = await run(100, 'failed');
    const fourth = await run(80, 'failed');
    const before = await readStatus(db);
    const summary = await readRunProgress(db, first);
    expect(summary).toMatchObject({ companiesDone: 1, rows: 10 });
    const drop = () => dropOldParts(db, { days: 90, limit: 6 });
    expect([await drop(), await drop(), await drop()]).toEqual([6, 6, 0]);
    // The first run was the last that read the documents completely. The next run compares with that part.
    expect(await kept(first)).toEqual(['documents']);
    for (const runId of [second, third]) expect(await kept(runId)).toEqual(['documents']);
    expect(await kept(fourth)).toHaveLength(companyResources.length);
    expect(before.parked).toMatchObject([{ code: 'SERVICE_ACCESS_DENIED', backfillParts: 1 }]);
    expect(await readStatus(db)).toMatchObject({
      backfills: before.backfills,
      parked: before.parked,
      silence: { missedRows: 0 },
    });
    expect(await readRunProgress(db, first)).toMatchObject({
      state: 'complete',
      companiesDone: null,
      rows: 10,
    });
    expect(await readRunProgress(db, fourth)).toMatchObject({ companiesDone: 1, rows: 10 });
    expect(
      (await startRun(db, { runId: randomUUID(), companyId: company.id, resource: 'documents' })).readBefore,
    ).toBe(true);
  });
});

test('the end of a run deletes the noted pages that its listings left', async () => {
  const { db } = warehouse;
  const [underWay, concluded, failed] = [randomUUID(), randomUUID(), randomUUID()];
  const resource = 'documents';
  const page = { currentPage: 1, total: null, hasNext: true, ids: ['a'], readAt: '2026-01-01T00:00:00Z' };
  for (const runId of [underWay, concluded, failed]) {
    await startRun(db, { runId, companyId: null, resource: null });
    // A part ends before its run.
    await startRun(db, { runId, companyId: company.id, resource });
    await finishRun(db, { runId, companyId: company.id, resource }, 'failed');
    const read = Array.from({ length: 3 }, (_, at) => ({ ...page, asked: at + 1 }));
    await notePages(db, { runId, companyId: company.id, resource, pass: 1 }, read);
  }
  await concludeRun(db, concluded);
  await failRunAndParts(db, failed, 'lost');
  expect(await rows(sql`select distinct run_id from metersync.pages`)).toEqual([{ run_id: underWay }]);
});

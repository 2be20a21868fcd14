import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DeliveredEvent, Replay } from '../../../contract/event.ts';
import { array } from '../../../db/connection/arrays.ts';
import { isRefusal } from '../../../db/connection/failures.ts';
import { printedBytes, type Recorded, recordEvents } from '../../../db/events/record.ts';
import { settleRecords } from '../../../db/events/settle.ts';
import { warehouseNow } from '../../../db/queue/due.ts';
import { type EventFilter, findAllEvents, readEvent, readKept } from '../../../db/read/events.ts';
import { cases } from '../../support/cases.ts';
import { company, delivery, documentEvent, intervalsEvent } from '../../support/events.ts';
import { forFile } from '../../support/for-file.ts';
import { hostileJson } from '../../support/hostile-json.ts';
import { writeRecords } from '../../support/pages.ts';
import { settleAs } from '../../support/settled.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());
await warehouse.db.execute(sql`insert into utility.companies (id) values (${company.id}::uuid)`);

const rows = async (query: ReturnType<typeof sql>) => (await warehouse.db.execute(query)).rows;
const record = async (event: DeliveredEvent) => await recordEvents(warehouse.db, [event]);
/** Replays an event from the journal's payload or bytes. */
async function replay({ id }: DeliveredEvent, how: Replay = 'unapplied'): Promise<Recorded> {
  const event = (await readKept(warehouse.db, [id]))[0]?.delivered;
  if (event === undefined) throw new Error(`nothing of ${id} was kept`);
  return await recordEvents(warehouse.db, [event], { replay: how });
}
const journal = async ({ id }: DeliveredEvent) =>
  (
    await rows(sql`select outcome, kind, record_id, error, error_code, attempts, next_attempt_at,
      applied_at is not null as applied from metersync.events where id = ${id}`)
  )[0];
const document = async (id: string) =>
  (
    await rows(
      sql`select xmin::text as version, updated::text, deleted_reason from utility.documents where id = ${id}`,
    )
  )[0];

const at = (n: number) => `2026-05-01T00:00:00.00000${n}`;

describe('a replay', () => {
  test('applies an event from its bytes that an earlier version could not apply', async () => {
    const id = randomUUID();
    const event = delivery(documentEvent('created', id, at(1), { note: 'żółć' }));
    await record(event);
    await warehouse.db.execute(sql`delete from utility.documents where id = ${id}`);
    await warehouse.db.execute(sql`update metersync.journal set outcome = 'dead', kind = 'ignored', record_id = null, queue = null, due_at = null,
      error = 'it was not understood', error_code = 'EVENT_UNREADABLE' where id = ${event.id}`);
    await warehouse.db.execute(sql`update metersync.event_payloads
      set payload = null, body = convert_to(${event.body}, 'UTF8') where id = ${event.id}`);
    expect(await replay(event)).toMatchObject({ fresh: 1, duplicates: 0, dead: 0 });
    expect(await journal(event)).toMatchObject({
      outcome: 'pending',
      kind: 'document',
      record_id: id,
      error: null,
      error_code: null,
    });
    expect(await document(id)).toMatchObject({ updated: expect.stringContaining('.000001') });
  });

  test('applies an event whose type has become supported', async () => {
    const id = randomUUID();
    const event = delivery(documentEvent('deleted', id, at(3)));
    await record(event);
    await warehouse.db.execute(sql`delete from utility.documents where id = ${id}`);
    await warehouse.db.execute(sql`update metersync.journal set outcome = 'ignored', kind = 'ignored',
      record_id = null, company_id = null, occurred_at = null, queue = null, due_at = null
      where id = ${event.id}`);
    await replay(event);
    expect(await journal(event)).toMatchObject({ outcome: 'pending', applied: false });
    expect(await document(id)).toMatchObject({ deleted_reason: 'event' });
  });

  test('leaves a superseded event superseded, and writes no row', async () => {
    const id = randomUUID();
    await record(delivery(documentEvent('deleted', id, at(5))));
    const late = delivery(documentEvent('updated', id, at(4)));
    await record(late);
    const before = await document(id);
    await replay(late);
    expect(await journal(late)).toMatchObject({ outcome: 'superseded' });
    expect(await document(id)).toEqual(before);
  });

  test('of an applied event changes nothing, and a forced replay makes the record be read again', async () => {
    const id = randomUUID();
    const event = delivery(documentEvent('created', id, at(1)));
    await record(event);
    await settleAs(warehouse.db, 'applied', sql`id = ${event.id}`);
    expect(await replay(event)).toMatchObject({ fresh: 0, duplicates: 1 });
    expect(await journal(event)).toMatchObject({ outcome: 'applied' });
    const before = await document(id);
    expect(await replay(event, 'all')).toMatchObject({ fresh: 1 });
    expect(await journal(event)).toMatchObject({ outcome: 'pending', applied: false });
    expect(await document(id)).toEqual(before);
  });

  test('of an applied deletion does not tombstone a record that was restored', async () => {
    const id = randomUUID();
    const gone = delivery(documentEvent('deleted', id, at(1)));
    await record(gone);
    await settleAs(warehouse.db, 'applied', sql`id = ${gone.id}`);
    await record(delivery(documentEvent('updated', id, at(2))));
    await replay(gone, 'all');
    expect(await document(id)).toMatchObject({ deleted_reason: null });
    await settleRecords(warehouse.db, 'documents', [id], await warehouseNow(warehouse.db));
    expect(await journal(gone)).toMatchObject({ outcome: 'superseded' });
  });

  test('makes a pending event due at once', async () => {
    const event = delivery(intervalsEvent('m-1', '2026-01-01', '2026-01-02', 96));
    await record(event);
    await warehouse.db.execute(sql`update metersync.journal set attempts = 9, error = 'refused',
      error_code = 'SERVICE_KEY_REFUSED', due_at = now() + interval '1 hour' where id = ${event.id}`);
    await replay(event);
    expect(await journal(event)).toMatchObject({
      outcome: 'pending',
      attempts: 0,
      next_attempt_at: null,
      error: null,
      error_code: null,
    });
  });

  test('that is retried does not open again what its first try recorded', async () => {
    const event = delivery(documentEvent('created', randomUUID(), at(1)));
    await record(event);
    const settle = () => settleAs(warehouse.db, 'applied', sql`id = ${event.id}`);
    const attempt = (runId: string) =>
      recordEvents(warehouse.db, [event], { replay: 'all', workflow: { workflowId: 'replay/1', runId } });
    await settle();
    expect(await attempt('run-1')).toMatchObject({ fresh: 1 });
    await settle();
    expect(await attempt('run-1')).toMatchObject({ fresh: 0, duplicates: 1 });
    expect(await journal(event)).toMatchObject({ outcome: 'applied' });
    expect(await attempt('run-2')).toMatchObject({ fresh: 1 });
  });

  test('is not settled by a read that began before it', async () => {
    const { db } = warehouse;
    const id = randomUUID();
    const event = delivery(documentEvent('created', id, at(1)));
    await record(event);
    const readAt = await warehouseNow(db);
    await replay(event);
    await writeRecords(warehouse, 'documents', [{ id, updated: at(1) }], { readAt, companyId: company.id });
    expect(await settleRecords(db, 'documents', [id], readAt)).toEqual({ applied: 0, waiting: 0 });
    const later = await warehouseNow(db);
    expect(await settleRecords(db, 'documents', [id], later)).toEqual({ applied: 1, waiting: 0 });
  });

  test('has the same effect if it runs twice, and numbers keep their digits', async () => {
    const digits = '12345678901234567890.123456789012345678900';
    const body = JSON.stringify(documentEvent('created', randomUUID(), at(1), { big: 0 }));
    const event = delivery(body.replace('"big":0', `"big":${digits}`));
    await record(event);
    for (let times = 0; times < 2; times++) {
      await replay(event);
      const [row] = await rows(
        sql`select payload ->> 'big' as big, outcome from metersync.events where id = ${event.id}`,
      );
      expect(row).toEqual({ big: digits, outcome: 'pending' });
    }
  });
});

test('all events that a filter selects are found once, page by page, also after they were replayed', async () => {
  const other = await createWarehouse();
  onTestFinished(() => other.drop());
  const { db } = other;
  await db.execute(sql`insert into utility.companies (id) values (${company.id}::uuid)`);
  const ids = Array.from({ length: 4 }, () => randomUUID());
  // The first document has three events, each of the others has one.
  const updates = [...ids, ...ids.slice(0, 1), ...ids.slice(0, 1)].map((id, n) =>
    delivery(documentEvent('updated', id, at(n + 1))),
  );
  const ranges = Array.from({ length: 3 }, () =>
    delivery(intervalsEvent('m-1', '2026-01-01', '2026-01-02', 9)),
  );
  const dead = Array.from({ length: 3 }, () => delivery(documentEvent('created', 'no id', at(1))));
  const ignored = Array.from({ length: 3 }, () => delivery({ eventType: 'any.v1' }));
  for (const event of [...updates, ...ranges, ...dead, ...ignored]) await recordEvents(db, [event]);
  await db.execute(sql`update metersync.journal set due_at = now() + interval '1 hour' * length(kind || record_id)
    where outcome = 'pending'`);
  const walk = async (filter: EventFilter): Promise<string[]> => {
    const chosen = { ...filter, unapplied: true };
    const walked = await findAllEvents(db, chosen);
    for (const atOnce of [1, 2, 3, 4])
      expect(await findAllEvents(db, chosen, atOnce), `${atOnce} at once`).toEqual(walked);
    for (const { delivered } of await readKept(db, walked))
      if (delivered !== undefined) await recordEvents(db, [delivered], { replay: 'unapplied' });
    return walked;
  };
  const idsOf = (...events: (readonly DeliveredEvent[])[]) =>
    events
      .flat()
      .map(({ id }) => id)
      .sort();
  expect((await walk({ outcome: 'pending' })).sort()).toEqual(idsOf(updates, ranges));
  expect((await walk({ outcome: 'dead' })).sort()).toEqual(idsOf(dead));
  expect((await walk({ outcome: 'ignored' })).sort()).toEqual(idsOf(ignored));
  expect((await walk({})).sort()).toEqual(idsOf(updates, ranges, dead, ignored));
  await settleAs(db, 'missing', sql`id = any(${array(idsOf(updates), 'text')})`);
  expect((await walk({ outcome: 'missing' })).sort()).toEqual(idsOf(updates));
  expect((await walk({ code: 'EVENT_UNREADABLE' })).sort()).toEqual(idsOf(dead));
});

test('the journal stores which workflow recorded an event, and how many readings the event announced', async () => {
  const event = delivery(intervalsEvent('m-2', '2026-01-01', '2026-01-02', 96));
  const odd = delivery({ ...intervalsEvent('m-2', '2026-01-01', '2026-01-02', 0), intervalCount: 'many' });
  await recordEvents(warehouse.db, [event, odd], { workflow: { workflowId: 'event/1', runId: 'run-1' } });
  const noted = { workflow_id: 'event/1', workflow_run_id: 'run-1', outcome: 'pending' };
  expect(
    await rows(sql`select workflow_id, workflow_run_id, outcome, interval_count from metersync.events
      where id in (${event.id}, ${odd.id}) order by interval_count`),
  ).toEqual([
    { ...noted, interval_count: '96' },
    { ...noted, interval_count: null },
  ]);
});

describe('numbers that expand to gigabytes', () => {
  const body = (count: number) => `{"eventType":"any.v1","n":[${Array(count).fill('1e131071').join(',')}]}`;

  test('make an event dead, with its bytes, unless there are few of them, and other events are not affected', async () => {
    const [few, many, beside] = [delivery(body(3)), delivery(body(500)), delivery({ eventType: 'any.v1' })];
    expect(await recordEvents(warehouse.db, [few, many, beside])).toMatchObject({ fresh: 3, dead: 1 });
    expect(await journal(many)).toMatchObject({ outcome: 'dead', error_code: 'EVENT_UNREADABLE' });
    expect(await readEvent(warehouse.db, many.id)).toMatchObject({
      payload: null,
      body: Buffer.from(body(500)),
    });
    expect(await replay(many)).toMatchObject({ dead: 1 });
    expect(await journal(few)).toMatchObject({ outcome: 'ignored' });
  });

  test('are never measured as smaller than Postgres prints them', async () => {
    await fc.assert(
      fc.asyncProperty(hostileJson, async (json) => {
        const { rows: found } = await warehouse.db
          .execute<{ bytes: number }>(sql`select octet_length(${json}::jsonb::text) as bytes`)
          .catch((error) => {
            if (!isRefusal(error)) throw error;
            return { rows: [] };
          });
        const [row] = found;
        if (row !== undefined) expect(printedBytes(json)).toBeGreaterThanOrEqual(row.bytes);
      }),
      { numRuns: cases(40, 100) },
    );
  });

  test('do not include indentation: a deeply nested event stays small when it is printed', async () => {
    const deep = delivery(`{"eventType":"deep.v1","deep":${'['.repeat(3_000)}1${']'.repeat(3_000)}}`);
    await record(deep);
    const printed = await readEvent(warehouse.db, deep.id);
    expect(JSON.parse(printed?.payload ?? '')).toMatchObject({ eventType: 'deep.v1' });
    expect(printed?.payload?.length).toBeLessThan(10_000);
  });
});

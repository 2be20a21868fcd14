import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import type { DeliveredEvent } from '../../contract/event.ts';
import { sqlState } from '../../db/connection/failures.ts';
import { recordEvents } from '../../db/events/record.ts';
import { settleRecords } from '../../db/events/settle.ts';
import { warehouseNow } from '../../db/queue/due.ts';
import { reviveFailed } from '../../db/queue/postpone.ts';
import { cases } from '../support/cases.ts';
import { company, connectionEvent, delivery, documentEvent } from '../support/events.ts';
import { writeRecords } from '../support/pages.ts';
import { createWarehouse } from '../support/warehouse.ts';

const resources = ['documents', 'connections'] as const;

test('groups, replays, reads and resumes at the same time lose no event', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(warehouse.drop);
  const { db } = warehouse;
  await writeRecords(warehouse, 'companies', [company]);
  const newIds = (count: number) => Array.from({ length: count }, () => randomUUID());
  const ids = { documents: newIds(10), connections: newIds(5) };
  const events: DeliveredEvent[] = [];
  let state = 0;
  const at = () => `2026-05-01T00:00:00.${String(state).padStart(6, '0')}`;
  const some = <T>(of: readonly T[]): T[] => of.filter(() => Math.random() < 0.4);
  const read = async (resource: 'documents' | 'connections', which: readonly string[]) => {
    const readAt = await warehouseNow(db);
    const records = which.map((id) => ({ id, updated: at(), status: 'A' }));
    await writeRecords(warehouse, resource, records, { readAt, companyId: company.id });
    await settleRecords(db, resource, which, readAt, { companyId: company.id });
  };
  // A group with deletions, or a replay, may deadlock with a read. Temporal would retry it.
  const again = (error: unknown) => {
    if (sqlState(error) !== '40P01') throw error;
  };
  const often = async (work: () => Promise<unknown>) => {
    for (let times = 0; times < cases(60, 600); times += 1) await work().catch(again);
  };
  await Promise.all([
    often(async () => {
      state += 1;
      const type = Math.random() < 0.2 ? 'deleted' : 'updated';
      const group = [
        ...some(ids.documents).map((id) => delivery(documentEvent(type, id, at()))),
        ...some(ids.connections).map((id) => delivery(connectionEvent('updated', id, at(), 'A', 'B'))),
      ];
      events.push(...group);
      await recordEvents(db, group);
    }),
    often(() => recordEvents(db, some(events.slice(-20)), { replay: 'all' })),
    often(() => recordEvents(db, some(events.slice(-20)))),
    ...resources.map((resource) => often(() => read(resource, some(ids[resource])))),
    often(() =>
      // The next read that finds these waiting records in an older state gives them up.
      db.execute(sql`
        update metersync.journal
        set due_at = recorded_at, attempts = 100, error_code = 'RECORD_NOT_SHOWN', error = 'why'
        where outcome = 'pending'
          and id in (
            select id from metersync.journal where outcome = 'pending' order by id limit 3 for update skip locked
          )`),
    ),
    often(() => reviveFailed(db, ['RECORD_NOT_SHOWN'])),
  ]);
  const { rows: wrong } = await db.execute(sql`
    select id, outcome, due_at from metersync.journal where (outcome = 'pending') <> (due_at is not null)`);
  expect(wrong).toEqual([]);
  // Nothing changes any more, so records are found again and all pending events are settled.
  for (let times = 0; times < 3; times += 1)
    for (const resource of resources) await read(resource, ids[resource]);
  const { rows: left } = await db.execute(sql`
    select count(*)::int as unsettled
    from metersync.journal where outcome not in ('applied', 'superseded')`);
  expect(left).toEqual([{ unsettled: 0 }]);
}, 120_000);

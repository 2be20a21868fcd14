import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { migrateWarehouse } from '../../db/migrate.ts';
import { warehouseUntil } from '../support/migrations.ts';

/** The last migration before the journal became a log. */
const before = '0019_look_ups';
const id = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`;

test('a journal of before says of each event what it said, and what waited waits', async () => {
  const db = await warehouseUntil(before);
  await db.execute(sql`create schema if not exists analytics`);
  await db.execute(sql`create view analytics.freshness as select id, outcome from metersync.events`);
  await db.execute(sql`
    insert into metersync.events (id, type, kind, record_id, company_id, occurred_at, range_start, range_end,
      interval_count, intervals_found, received_at, payload, outcome, applied_at, attempts, next_attempt_at, error, error_code)
    select id, type, kind, record, company::uuid, at, start, start + interval '1 day', told, found, now(), '{}',
      outcome, case when outcome = 'applied' then now() end, attempts, now() + interval '1 hour' * nullif(attempts, 0),
      error, code
    from (values
      ('waits', 'document.updated.v2', 'document', ${id(1)}, ${id(9)}, timestamptz '2026-01-02', null::timestamptz, null::int, null::int, 'pending', 3, 'why', 'RECORD_NOT_SHOWN'),
      ('waits too', 'document.updated.v2', 'document', ${id(1)}, ${id(9)}, '2026-01-03', null, null, null, 'pending', 0, null, null),
      ('was applied', 'document.created.v2', 'document', ${id(1)}, ${id(9)}, '2026-01-01', null, null, null, 'applied', 0, null, null),
      ('was missing', 'connection.updated.v2', 'connection', ${id(2)}, ${id(9)}, '2026-01-01', null, null, null, 'missing', 15, 'why', 'RECORD_NOT_SHOWN'),
      ('superseded', 'connection.updated.v2', 'connection', ${id(2)}, ${id(9)}, '2025-01-01', null, null, null, 'superseded', 0, null, null),
      ('range waits', 'intervals.synced', 'interval', 'm-1', null, null, '2026-01-01', 96, null, 'pending', 0, null, null),
      ('range was short', 'intervals.synced', 'interval', 'm-1', null, null, '2026-02-01', 96, 90, 'applied', 0, null, null),
      ('dead', 'document.updated.v2', 'ignored', null, null, null, null, null, null, 'dead', 0, 'why', 'EVENT_UNREADABLE'),
      ('ignored', 'other', 'ignored', null, null, null, null, null, null, 'ignored', 0, null, null)
    ) as e (id, type, kind, record, company, at, start, told, found, outcome, attempts, error, code)`);
  const said = async () =>
    (
      await db.execute(sql`
        select id, outcome, error, error_code, interval_count, intervals_found
        from metersync.events order by id`)
    ).rows;
  const saidBefore = await said();
  await migrateWarehouse(db);
  // Tries are those of the record now.
  expect(await said()).toEqual(
    saidBefore.map((row) =>
      row.id === 'waits too' ? { ...row, error: 'why', error_code: 'RECORD_NOT_SHOWN' } : row,
    ),
  );
  const stale = await db.execute(sql`
    select kind, record_id, owner, events, wanted::date::text as wanted, attempts, due_at <= clock_timestamp() as due
    from metersync.stale_records order by kind`);
  expect(stale.rows).toEqual([
    {
      ...{ kind: 'document', record_id: id(1), owner: id(9), events: 2 },
      ...{ wanted: '2026-01-03', attempts: 3, due: true },
    },
    {
      ...{ kind: 'interval', record_id: 'range waits', owner: 'm-1', events: 1 },
      ...{ wanted: null, attempts: 0, due: true },
    },
  ]);
});

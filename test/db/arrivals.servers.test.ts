import { expect, test } from 'vitest';
import { readArrivals } from '../../db/read/arrivals.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const readAll = () => readArrivals(warehouse.db);

test('the hours of arrivals are the last 24, whether or not there are events', async () => {
  const hours = await readAll();
  expect(hours).toHaveLength(24);
  for (const hour of hours) expect(hour).toMatchObject({ outcomes: {}, waiting: 0, rowP50: null });
});

test('each hour has its outcomes, the delays until row and record, and how many events still waited at its end', async () => {
  await warehouse.pool.query(`
    insert into metersync.journal (id, type, kind, record_id, received_at, recorded_at, settled_at, outcome, queue, due_at,
      error)
    select id, 'document.created.v2', 'document', gen_random_uuid()::text, received,
      received + interval '100 milliseconds', settled, outcome, case outcome when 'pending' then 'document/1' end, case outcome when 'pending' then received end,
      case outcome when 'dead' then 'unreadable' end
    from date_bin('1 hour', now(), 'epoch') as this (hour)
      cross join lateral (values
        ('a', hour - interval '2 hours 50 minutes', hour - interval '2 hours 49 minutes', 'applied'),
        ('b', hour - interval '2 hours 40 minutes', hour - interval '1 hour 30 minutes', 'applied'),
        ('c', hour - interval '1 hour 40 minutes', null, 'dead'),
        ('d', hour - interval '1 hour 30 minutes', null, 'pending'),
        ('old', hour - interval '2 days', null, 'pending')
      ) as event (id, received, settled, outcome)`);
  const hours = await readAll();
  const [first, second, ...later] = hours.slice(20);
  for (const hour of later) expect(hour).toMatchObject({ outcomes: {}, waiting: 1, recordP50: null });
  for (const hour of hours.slice(0, 20)) expect(hour).toMatchObject({ outcomes: {}, waiting: 0 });
  expect(first).toMatchObject({ outcomes: { applied: 2 }, waiting: 1, rowP50: 0.1, recordP50: 2130 });
  expect(second).toMatchObject({
    outcomes: { dead: 1, pending: 1 },
    waiting: 1,
    rowP99: 0.1,
    recordP50: null,
    recordP99: null,
  });
  expect(Date.parse(second?.hour ?? '') - Date.parse(first?.hour ?? '')).toBe(3_600_000);
});

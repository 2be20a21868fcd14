import { expect, test } from 'vitest';
import { readArrivals } from '../../db/read/arrivals.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

const readAll = () => readArrivals(warehouse.db);

test('there are no hours without events', async () => {
  expect(await readAll()).toEqual([]);
});

test('hours of the last day have their events by outcome', async () => {
  await warehouse.pool.query(`
    insert into metersync.journal (id, type, kind, record_id, received_at, recorded_at, outcome, error)
    select id, 'document.created.v2', 'document', gen_random_uuid()::text, received, received, outcome,
      case outcome when 'dead' then 'unreadable' end
    from date_bin('1 hour', now(), 'epoch') as this (hour)
      cross join lateral (values
        ('a', hour - interval '2 hours 50 minutes', 'applied'),
        ('b', hour - interval '2 hours 40 minutes', 'applied'),
        ('c', hour - interval '1 hour 40 minutes', 'dead'),
        ('d', hour - interval '1 hour 30 minutes', 'pending'),
        ('old', hour - interval '2 days', 'pending')
      ) as event (id, received, outcome)`);
  const hours = await readAll();
  expect(hours.map(({ outcomes }) => outcomes)).toEqual([{ applied: 2 }, { dead: 1, pending: 1 }]);
  const [first = Number.NaN, second = Number.NaN] = hours.map(({ hour }) => Date.parse(hour));
  expect(second - first).toBe(3_600_000);
});

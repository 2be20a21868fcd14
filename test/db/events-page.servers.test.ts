import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { consoleBounds } from '../../db/read/bounds.ts';
import { countEvents, listEvents } from '../../db/read/events.ts';
import { createWarehouse } from '../support/warehouse.ts';

test('a page examines a few thousand events, and the next page continues where the page ended', async () => {
  const { db, drop } = await createWarehouse();
  onTestFinished(drop);
  const many = 2 * consoleBounds.searchedMax;
  await db.execute(sql`
    insert into metersync.journal
      (id, type, kind, received_at, outcome)
    select
      'event ' || n,
      case n when 1 then 'rare' else 'common' end,
      'ignored',
      '2026-05-01'::timestamptz + interval '1 second' * (n / 10),
      'ignored'
    from generate_series(1, ${many}::int) n`);
  const found: string[] = [];
  let pages = 0;
  let after: Parameters<typeof listEvents>[2]['after'];
  do {
    const { events, next } = await listEvents(db, { type: 'rare' }, { limit: 10, after });
    found.push(...events.map(({ id }) => id));
    after = next ?? undefined;
    pages += 1;
  } while (after !== undefined);
  expect({ found, pages }).toEqual({ found: ['event 1'], pages: 2 });
  expect(await countEvents(db, { type: 'common' }, 100)).toEqual({ events: 101, isAll: false });
  expect(await countEvents(db, { type: 'rare' }, 100)).toEqual({ events: 0, isAll: false });
  expect(await countEvents(db, { type: 'rare' }, many)).toEqual({ events: 1, isAll: true });
});

import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { migrateWarehouse } from '../../db/migrate/migrate.ts';
import { createWarehouse } from '../support/warehouse.ts';

test('a warehouse with all 600 monthly partitions can be migrated', async () => {
  const { db, drop } = await createWarehouse();
  onTestFinished(drop);
  for (let year = 2000; year < 2050; year += 1) {
    await db.execute(sql`
      select metersync.ensure_interval_month(month)
      from generate_series(make_timestamptz(${year}, 1, 1, 0, 0, 0), make_timestamptz(${year}, 12, 1, 0, 0, 0),
        interval '1 month') month`);
  }
  await db.execute(sql`update metersync_migrations.views set version = 'earlier'`);
  expect(await migrateWarehouse(db)).toMatchObject({ views: true });
  const { rows } = await db.execute<{ months: number }>(sql`
    select count(*)::int as months from pg_inherits where inhparent = 'utility.intervals'::regclass`);
  expect(rows).toEqual([{ months: 602 }]);
}, 240_000);

import { sql } from 'drizzle-orm';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { expect, onTestFinished, test } from 'vitest';
import { connectWarehouse } from '../../db/connect.ts';
import { migrateWarehouse } from '../../db/migrate.ts';
import { createDatabase } from '../support/database.ts';
import { migrationsUntil } from '../support/migrations.ts';

test('a warehouse with every month of readings that has a partition of its own, 600, is migrated', async () => {
  const { url, drop } = await createDatabase('months');
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 2, onError: () => {} });
  onTestFinished(async () => {
    await warehouse.close();
    await drop();
  });
  const { db } = warehouse;
  await migrate(db, {
    migrationsFolder: await migrationsUntil('0012_typed_views'),
    migrationsSchema: 'metersync_migrations',
    migrationsTable: 'schema_migrations',
  });
  for (let year = 2000; year < 2050; year += 1) {
    await db.execute(sql`
      select metersync.ensure_interval_month(month)
      from generate_series(make_timestamptz(${year}, 1, 1, 0, 0, 0), make_timestamptz(${year}, 12, 1, 0, 0, 0),
        interval '1 month') month`);
  }
  await migrateWarehouse(db);
  const { rows } = await db.execute<{ months: number }>(sql`
    select count(*)::int as months from pg_inherits where inhparent = 'utility.intervals'::regclass`);
  expect(rows).toEqual([{ months: 602 }]);
}, 240_000);

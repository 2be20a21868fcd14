import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { expect, onTestFinished, test } from 'vitest';
import { connectWarehouse } from '../../db/connection/connect.ts';
import { migrateWarehouse } from '../../db/migrate/migrate.ts';
import { migrationsSchema, migrationsTable } from '../../db/migrate/migrations-table.ts';
import { createDatabase } from '../support/database.ts';
import { earlierMigrations } from '../support/migrations.ts';

/** The migrations before the table of kept months went. */
const before = 15;

test('an upgrade keeps when the months of each company were worked out', async () => {
  const { url, drop } = await createDatabase('kept_months');
  const { db, close } = connectWarehouse({ url, timeZone: 'UTC', max: 2, onError: () => {} });
  onTestFinished(async () => {
    await close();
    await drop();
  });
  await migrate(db, { migrationsFolder: earlierMigrations(before), migrationsSchema, migrationsTable });
  const company_id = randomUUID();
  const at = '2026-01-02 03:04:05.678901+00';
  await db.execute(sql`insert into metersync.months_kept values (${company_id}::uuid, ${at}::timestamptz)`);
  await migrateWarehouse(db);
  const { rows } = await db.execute(sql`
    select company_id, changed_at::text as at, to_regclass('metersync.months_kept') as former
    from metersync.company_changes
    where is_kept`);
  expect(rows).toEqual([{ company_id, at, former: null }]);
}, 60_000);

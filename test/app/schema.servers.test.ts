import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { requireZone, warnOfDropped } from '../../app/schema.ts';
import { createWarehouse } from '../support/warehouse.ts';

test('refuses sessions in another time zone than the configured one, with advice', async () => {
  const warehouse = await createWarehouse('Europe/Berlin');
  onTestFinished(() => warehouse.drop());
  await requireZone(warehouse, 'europe/berlin');
  await expect(requireZone(warehouse, 'UTC')).rejects.toThrow(
    /use the time zone Europe\/Berlin instead of UTC: .*alter role … set timezone = 'UTC'.*running\.md/,
  );
});

test('warns of sessions with another search path or isolation than they ask for, with advice', async () => {
  const warehouse = await createWarehouse();
  // Like sessions behind a pooler that drops their options, in a database that sets another isolation.
  const options = '-c default_transaction_isolation=serializable';
  const pool = new pg.Pool({ connectionString: warehouse.url, options });
  // Connections of the pool may outlive its end. They fail when the database is dropped.
  pool.on('error', () => {});
  onTestFinished(async () => {
    await pool.end();
    await warehouse.drop();
  });
  const warn = vi.fn();
  await warnOfDropped(warehouse, { warn });
  expect(warn).not.toHaveBeenCalled();
  await warnOfDropped({ db: drizzle(pool) }, { warn });
  expect(warn.mock.calls).toEqual([
    [
      { search_path: '"$user", public' },
      expect.stringMatching(/alter role … set search_path = pg_catalog, pg_temp".*running\.md/),
    ],
    [
      { default_transaction_isolation: 'serializable' },
      expect.stringMatching(
        /alter role … set default_transaction_isolation = 'read committed'".*running\.md/,
      ),
    ],
  ]);
});

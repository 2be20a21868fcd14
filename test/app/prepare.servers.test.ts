import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { requireZone, warnOfSearchPath } from '../../app/prepare.ts';
import { createWarehouse } from '../support/warehouse.ts';

test('sessions in another time zone than the configured one are refused with advice', async () => {
  const warehouse = await createWarehouse('Europe/Berlin');
  onTestFinished(() => warehouse.drop());
  await requireZone(warehouse, 'europe/berlin');
  await expect(requireZone(warehouse, 'UTC')).rejects.toThrow(
    /use the time zone Europe\/Berlin instead of UTC: .*alter role … set timezone = 'UTC'.*running\.md/,
  );
});

test('sessions that search other schemas than they ask for are a warning with advice', async () => {
  const warehouse = await createWarehouse();
  // As behind a pooler that drops the options of sessions.
  const pool = new pg.Pool({ connectionString: warehouse.url });
  // Its connections may outlive its end: dropping the database ends them.
  pool.on('error', () => {});
  onTestFinished(async () => {
    await pool.end();
    await warehouse.drop();
  });
  const warn = vi.fn();
  await warnOfSearchPath(warehouse, { warn });
  expect(warn).not.toHaveBeenCalled();
  await warnOfSearchPath({ db: drizzle(pool) }, { warn });
  expect(warn.mock.calls).toEqual([
    [
      { searched: ['"$user"', 'public'] },
      expect.stringMatching(/alter role … set search_path = pg_catalog, pg_temp".*running\.md/),
    ],
  ]);
});

import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { compressRecords } from '../../../db/migrate/migrate.ts';
import { createWarehouse } from '../../support/warehouse.ts';

test('the compression of tables and history is changed if Postgres supports it, and a second call changes nothing', async () => {
  const { db, drop } = await createWarehouse();
  onTestFinished(drop);
  const methods = async () =>
    (
      await db.execute<{ relation: string; method: string }>(sql`
        select attrelid::regclass::text as relation, attcompression as method
        from pg_attribute
        where attname = 'raw' and attrelid::regclass::text ~ '^(utility|metersync)[.]'
          and (select relkind from pg_class where oid = attrelid) = 'r'
        order by relation`)
    ).rows;
  const { rows } = await db.execute<{ has: boolean }>(
    sql`select 'lz4' = any(enumvals) as has from pg_settings where name = 'default_toast_compression'`,
  );
  // The compression method that a migration sets depends on how this Postgres was built.
  const made = rows[0]?.has === true ? 'l' : '';
  const before = await methods();
  expect(before.length).toBeGreaterThanOrEqual(7);
  expect(new Set(before.map(({ method }) => method))).toEqual(new Set([made]));

  expect(await compressRecords(db, 'pglz')).toEqual(before.map(({ relation }) => `${relation}.raw`));
  expect(new Set((await methods()).map(({ method }) => method))).toEqual(new Set(['p']));
  expect(await compressRecords(db, 'pglz')).toEqual([]);
});

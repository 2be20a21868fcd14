import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { readSettings } from '../../app/settings/settings.ts';
import { openToWork } from '../../app/warehouse.ts';
import { connectWarehouse, type Executor, withTransaction } from '../../db/connection/connect.ts';
import { isMistake, sqlState, warehouseFailure } from '../../db/connection/failures.ts';
import { prepared, sendsMin } from '../../db/connection/prepared.ts';
import { rejection } from '../service/setup.ts';
import { forFile } from '../support/for-file.ts';
import { createWarehouse } from '../support/warehouse.ts';

const warehouse = await forFile(createWarehouse());

/** Opens the warehouse over one connection, whose prepared statements can be listed. */
function oneConnection() {
  const { db, close } = connectWarehouse({ url: warehouse.url, timeZone: 'UTC', max: 1, onError: () => {} });
  onTestFinished(close);
  const listed = async () =>
    (
      await db.execute<{ name: string; statement: string }>(
        sql`select name, statement from pg_prepared_statements`,
      )
    ).rows;
  const add = (to: number, within: Executor = db) =>
    prepared(within, 'add').execute<{ sum: number }>(sql`select ${to}::int + 1 as sum`);
  return { db, listed, add };
}

/** Sends a statement so often that connections prepare it. */
async function often(send: () => Promise<unknown>): Promise<void> {
  for (let sent = 0; sent <= sendsMin; sent++) await send();
}

test('a named statement that is sent often is prepared once for the pool and nested transactions together', async () => {
  const { db, listed, add } = oneConnection();
  for (let sent = 0; sent < sendsMin; sent++) await add(sent);
  expect(await listed()).toEqual([]);
  expect((await add(41)).rows).toEqual([{ sum: 42 }]);
  const within = await withTransaction(db, (tx) => withTransaction(tx, (inner) => add(1, inner)));
  expect(within.rows).toEqual([{ sum: 2 }]);
  expect(await listed()).toEqual([
    { name: expect.stringMatching(/^add_[0-9a-f]{16}$/), statement: 'select $1::int + 1 as sum' },
  ]);
});

test('a named statement returns the same values as Drizzle: times and numbers as text', async () => {
  const { db } = oneConnection();
  const odd = sql`select '2026-01-01 00:00:00.000001+00'::timestamptz as at, 1.10 as amount, interval '1 h' as wait,
    array['2026-01-01 00:00:00.000001+00'::timestamptz] as several where ${1}::int = 1`;
  expect((await prepared(db, 'odd').execute(odd)).rows).toEqual((await db.execute(odd)).rows);
});

test('a named statement is planned once for all values in the sessions of workers', async () => {
  const { db, close } = openToWork(readSettings({}), warehouse.url, pino({ level: 'silent' }), 1);
  onTestFinished(close);
  await often(() =>
    prepared(db, 'oneTable').execute(sql`select id from metersync.journal where id = ${'a'}`),
  );
  await prepared(db, 'oneTable').execute(sql`select id from metersync.journal where id = ${'b'}`);
  const { rows } = await db.execute(
    sql`select generic_plans::int as generic, custom_plans::int as custom from pg_prepared_statements`,
  );
  expect(rows).toEqual([{ generic: 2, custom: 0 }]);
});

test('each text of a named statement has its own name, which is the same in every pool', async () => {
  const [one, other] = [oneConnection(), oneConnection()];
  for (const { db } of [one, other])
    for (const text of ['1', '2'])
      await often(() => prepared(db, 'add').execute(sql`select ${1}::int + ${sql.raw(text)}`));
  expect(new Set((await one.listed()).map(({ name }) => name)).size).toBe(2);
  expect(await other.listed()).toEqual(await one.listed());
});

test('a statement fails once after a migration changes its columns, then works again', async () => {
  const { db } = oneConnection();
  await db.execute(sql`create table public.it (a int)`);
  const read = () =>
    withTransaction(db, (tx) =>
      prepared(tx, 'read').execute(sql`select * from public.it where ${1}::int = 1`),
    );
  await often(read);
  await db.execute(sql`alter table public.it add b int`);
  await expect(read()).rejects.toThrow();
  expect((await read()).rows).toEqual([]);
});

test('behind a pooler that changes sessions, one statement fails and no statement is prepared after that', async () => {
  const { db, listed, add } = oneConnection();
  await often(() => add(1));
  await db.execute(sql`deallocate all`);
  await expect(add(1)).rejects.toThrow();
  expect((await add(1)).rows).toEqual([{ sum: 2 }]);
  await often(() => prepared(db, 'subtract').execute(sql`select ${1}::int - 1`));
  expect(await listed()).toEqual([]);
});

test('if a session behind a pooler already has the statement, another attempt works', async () => {
  const { db, add } = oneConnection();
  const other = oneConnection();
  await often(() => other.add(1));
  const [{ name } = { name: '' }] = await other.listed();
  await db.execute(sql.raw(`prepare ${name} as select 'of another client'`));
  const error = await rejection(add(1));
  expect(sqlState(error)).toBe('42P05');
  expect(isMistake(error)).toBe(false);
  expect(warehouseFailure(error)).toMatchObject({ code: 'WAREHOUSE_UNAVAILABLE', action: 'retry' });
  expect((await add(1)).rows).toEqual([{ sum: 2 }]);
});

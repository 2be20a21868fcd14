import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { connectWarehouse, type Executor, withTransaction } from '../../db/connection/connect.ts';
import { isMistake, sqlState, warehouseFailure } from '../../db/connection/failures.ts';
import { charactersMax, plannedEachTime, sendsMin } from '../../db/connection/prepare.ts';
import { rejection } from '../service/setup.ts';
import { createWarehouse } from '../support/warehouse.ts';

/** Opens a warehouse over one connection, whose prepared statements can be listed. */
async function oneConnection() {
  const warehouse = await createWarehouse();
  const { db, close } = connectWarehouse({ url: warehouse.url, timeZone: 'UTC', max: 1, onError: () => {} });
  onTestFinished(async () => {
    await close();
    await warehouse.drop();
  });
  const prepared = async (): Promise<string[]> =>
    (await db.execute<{ statement: string }>(sql`select statement from pg_prepared_statements`)).rows.map(
      ({ statement }) => statement,
    );
  return { db, prepared };
}

/** Sends a statement until a connection prepares it. */
async function sendOften(db: Executor, send: (tx: Executor) => Promise<unknown>): Promise<void> {
  for (let sent = 0; sent <= sendsMin; sent++) await send(db);
}

test('a statement that is sent often is prepared, and returns the same', async () => {
  const { db, prepared } = await oneConnection();
  const add = (to: number) => db.execute(sql`select ${to}::int + 1 as sum`);
  for (let sent = 1; sent <= sendsMin; sent++) await add(sent);
  expect(await prepared()).toEqual([]);
  expect((await add(41)).rows).toEqual([{ sum: 42 }]);
  expect((await add(1)).rows).toEqual([{ sum: 2 }]);
  expect(await prepared()).toEqual(['select $1::int + 1 as sum']);
});

test('statements with large or no parameters, or with a plan of their own, are not prepared', async () => {
  const { db, prepared } = await oneConnection();
  await sendOften(db, (tx) => tx.execute(sql`select length(${'x'.repeat(charactersMax + 1)}::text)`));
  await sendOften(db, (tx) => tx.execute(sql`${plannedEachTime} select ${1}::int`));
  await sendOften(db, (tx) => tx.execute(sql`select 1`));
  expect(await prepared()).toEqual([]);
});

test('a statement whose columns a migration changes fails once, then works again', async () => {
  const { db, prepared } = await oneConnection();
  await db.execute(sql`create table public.it (a int)`);
  const read = () =>
    withTransaction(db, (tx) => tx.execute(sql`select * from public.it where ${1}::int = 1`));
  await sendOften(db, read);
  expect(await prepared()).toHaveLength(1);
  await db.execute(sql`alter table public.it add b int`);
  await expect(read()).rejects.toThrow();
  expect((await read()).rows).toEqual([]);
});

test('behind a pooler that changes sessions one statement fails, and none is prepared any more', async () => {
  const { db, prepared } = await oneConnection();
  const add = (to: number) => db.execute(sql`select ${to}::int + 1 as sum`);
  await sendOften(db, () => add(1));
  expect(await prepared()).toHaveLength(1);
  await db.execute(sql`deallocate all`);
  await expect(add(1)).rejects.toThrow();
  expect((await add(1)).rows).toEqual([{ sum: 2 }]);
  await sendOften(db, (tx) => tx.execute(sql`select ${1}::int - 1`));
  expect(await prepared()).toEqual([]);
});

test('behind a pooler the session may have the statement already, which another attempt mends', async () => {
  const { db } = await oneConnection();
  const add = (to: number) => db.execute(sql`select ${to}::int + 1 as sum`);
  const name = await preparedName();
  await db.execute(sql.raw(`prepare ${name} as select 'of another client'`));
  for (let sent = 1; sent <= sendsMin; sent++) await add(sent);
  const error = await rejection(add(1));
  expect(sqlState(error)).toBe('42P05');
  expect(isMistake(error)).toBe(false);
  expect(warehouseFailure(error)).toMatchObject({ code: 'WAREHOUSE_UNAVAILABLE', action: 'retry' });
  expect((await add(1)).rows).toEqual([{ sum: 2 }]);

  /** The name that any of our clients gives the statement. */
  async function preparedName(): Promise<string> {
    const other = await oneConnection();
    await sendOften(other.db, (tx) => tx.execute(sql`select ${1}::int + 1 as sum`));
    const { rows } = await other.db.execute<{ name: string }>(sql`select name from pg_prepared_statements`);
    return rows[0]?.name ?? '';
  }
});

test('two pools never share a name for different statements', async () => {
  const [one, other] = [await oneConnection(), await oneConnection()];
  const name = async ({ db }: { readonly db: Executor }, text: string): Promise<string[]> => {
    await sendOften(db, (tx) => tx.execute(sql`select ${1}::int + ${sql.raw(text)}`));
    const { rows } = await db.execute<{ name: string }>(sql`select name from pg_prepared_statements`);
    return rows.map((row) => row.name);
  };
  const [first] = await name(one, '1');
  expect(first).toMatch(/^hot_[0-9a-f]{59}$/);
  expect(await name(other, '2')).not.toContain(first);
  expect(await name(other, '1')).toContain(first);
});

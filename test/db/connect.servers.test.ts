import { readFile } from 'node:fs/promises';
import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { connectWarehouse, withTransaction } from '../../db/connection/connect.ts';
import { recordEvents } from '../../db/events/record.ts';
import { delivery, intervalsEvent } from '../support/events.ts';
import { outageOf } from '../support/outage.ts';
import { createWarehouse } from '../support/warehouse.ts';

test('a cut connection fails only the work that used it', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const outage = await outageOf(warehouse.url);
  onTestFinished(() => outage.close());

  const work = withTransaction(warehouse.db, async (tx) => {
    await tx.execute(sql`select 1`);
    // The connection is cut between two statements, so no pending query can report it.
    await outage.cut();
    await tx.execute(sql`select 2`);
  });
  await expect(work).rejects.toThrow();
  expect((await warehouse.db.execute(sql`select 3 as n`)).rows).toEqual([{ n: 3 }]);
});

test('work on an unreachable warehouse fails with a retried failure, and afterwards all connections work again', async () => {
  const warehouse = await createWarehouse();
  const outage = await outageOf(warehouse.url);
  onTestFinished(async () => {
    await outage.close();
    await warehouse.drop();
  });
  const event = () => delivery(intervalsEvent('m-1', '2026-01-01', '2026-01-02', 96));
  const together = () => Array.from({ length: 20 }, () => recordEvents(warehouse.db, [event()]));
  await Promise.all(together());
  await outage.begin();
  for (const { reason } of (await Promise.allSettled(together())) as PromiseRejectedResult[]) {
    expect(reason).toMatchObject({ code: 'WAREHOUSE_UNAVAILABLE', action: 'retry' });
  }
  await outage.end();
  await Promise.all(together());
  expect(warehouse.pool.idleCount).toBe(warehouse.pool.totalCount);
});

test('a transaction throws the error of its work, not the error of a failed rollback', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const outage = await outageOf(warehouse.url);
  onTestFinished(() => outage.close());
  const work = withTransaction(warehouse.db, async () => {
    await outage.cut();
    throw new Error('the reason');
  });
  await expect(work).rejects.toThrow('the reason');
});

test("server options in the address are added to metersync's options, and do not replace the time zone", async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const url = new URL(warehouse.url);
  url.searchParams.set('options', '-c statement_timeout=54321 -c TimeZone=Asia/Tokyo');
  const own = connectWarehouse({ url: url.href, timeZone: 'Europe/Berlin', max: 1, onError: () => {} });
  const { rows } = await own.db.execute(sql`
    select current_setting('statement_timeout') as timeout, current_setting('TimeZone') as zone`);
  await own.close();
  expect(rows).toEqual([{ timeout: '54321ms', zone: 'Europe/Berlin' }]);
});

test('sessions read what other sessions committed meanwhile, whatever isolation level the database sets', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const name = new URL(warehouse.url).pathname.slice(1);
  await warehouse.db.execute(
    sql.raw(`alter database ${name} set default_transaction_isolation = 'repeatable read'`),
  );
  const own = connectWarehouse({ url: warehouse.url, timeZone: 'UTC', max: 1, onError: () => {} });
  onTestFinished(() => own.close());
  const { rows } = await own.db.execute(sql`show transaction_isolation`);
  expect(rows).toEqual([{ transaction_isolation: 'read committed' }]);
});

test('a function in the schema public is not run in place of a Postgres function with the same name', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  // Of two functions Postgres runs the function whose types fit best. Its own function does not take a date.
  await warehouse.db.execute(sql`
    create function public.date_trunc(text, date) returns text language sql as $$ select 'theirs' $$`);
  const { rows } = await warehouse.db.execute(
    sql`select date_trunc('month', date '2026-01-31')::text as month`,
  );
  expect(rows).toEqual([{ month: '2026-01-01 00:00:00+00' }]);
});

test('a session that cannot write is not used again, because a new session may reach the new primary', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const onlyRead = async (on: boolean) => {
    const name = new URL(warehouse.url).pathname.slice(1);
    await warehouse.db.execute(sql.raw(`alter database ${name} set default_transaction_read_only = ${on}`));
  };
  const own = connectWarehouse({ url: warehouse.url, timeZone: 'UTC', max: 1, onError: () => {} });
  onTestFinished(() => own.close());
  const write = () => recordEvents(own.db, [delivery(intervalsEvent('m-1', '2026-01-01', '2026-01-02', 96))]);
  await onlyRead(true);
  await expect(write()).rejects.toThrow('SQLSTATE 25006');
  await onlyRead(false);
  await write();
});

test('the kernel probes a silent connection, because Postgres may have vanished', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const { rows } = await warehouse.db.execute<{ port: number }>(sql`select inet_client_port() as port`);
  const port = rows[0]?.port.toString(16).toUpperCase().padStart(4, '0');
  // Linux lists each socket with its timer. Timer 02 is the keep-alive timer.
  expect(await readFile('/proc/net/tcp', 'utf8')).toMatch(new RegExp(`: \\w+:${port} .* 02:`));
});

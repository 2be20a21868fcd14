import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { keepViews, refreshNow } from '../../app/typed-views.ts';
import { createFieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { readStatus } from '../../db/read/status.ts';
import { judgeViews } from '../../operations/doctor/warehouse.ts';
import { loginAs } from '../support/login.ts';
import { until } from '../support/poll.ts';
import { createWarehouse } from '../support/warehouse.ts';

function recorded() {
  const lines: { msg: string; level: number }[] = [];
  const log = pino({ level: 'debug' }, { write: (line) => void lines.push(JSON.parse(line)) });
  return { lines, log };
}

test('a worker makes views again for new fields, reports what blocks one, and carries on', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const { db } = warehouse;
  const { lines, log } = recorded();
  const views = keepViews({ db, log, afterMs: 20 });
  onTestFinished(() => views.stop());
  const catalogue = createFieldCatalogue({ db, onNewField: views.changed, onError: () => {} });
  onTestFinished(() => catalogue.close());
  const typeOf = async (column: string) =>
    (
      await db.execute(sql`select format_type(atttypid, null) as type from pg_attribute
        where attrelid = 'fields.documents'::regclass and attname = ${column}`)
    ).rows[0]?.type;
  const isType = (column: string, type: string) =>
    until(`${column} is ${type}`, async () => (await typeOf(column)) === type);
  const said = (pattern: RegExp) => lines.filter(({ msg, level }) => level >= 40 && pattern.test(msg));

  await catalogue.note('documents', 'v2.2', [{ amount: 1 }]);
  await isType('amount', 'numeric');
  await db.execute(sql`create view public.mine as select amount from fields.documents`);
  await catalogue.note('documents', 'v2.2', [{ amount: 'n/a' }]);
  await until(
    'the block is logged',
    () => said(/fields\.documents cannot take .* of amount, as view public.mine was built/).length > 0,
  );
  await catalogue.note('documents', 'v2.2', [{ more: true }]);
  await isType('more', 'boolean');
  expect([await typeOf('amount'), said(/cannot take/).length]).toEqual(['numeric', 1]);
  await expect(refreshNow(db)).resolves.toMatchObject({ blocked: [{ by: ['view public.mine'] }] });
  const { blockedViews } = await readStatus(db);
  expect(blockedViews).toEqual([{ view: 'fields.documents', columns: ['amount'], by: ['view public.mine'] }]);
  const warning = { state: 'warn', saw: expect.stringContaining('as view public.mine was built on it') };
  expect(await judgeViews(db)).toMatchObject({
    ...warning,
    todo: expect.stringMatching(/^Drop what was built/),
  });
  await db.transaction(async (tx) => {
    // The worker may be trying again: it does not see this transaction before it is committed.
    await tx.execute(sql`drop view public.mine`);
    const free = { state: 'warn', todo: expect.stringMatching(/^Run metersync views/) };
    expect(await judgeViews(tx)).toMatchObject(free);
  });
  await catalogue.note('documents', 'v2.2', [{ other: true }]);
  await isType('amount', 'text');
  await until('nothing stands in the way', async () => (await judgeViews(db)).state === 'ok');
});

test('the writer role is enough to make views; without it the log and doctor say what is missing', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const { db } = warehouse;
  const writer = await loginAs('metersync_writer', warehouse);
  const { lines, log } = recorded();
  const views = keepViews({ db: writer.db, log, afterMs: 5 });
  onTestFinished(() => views.stop());
  const catalogue = createFieldCatalogue({ db: writer.db, onNewField: views.changed, onError: () => {} });
  onTestFinished(() => catalogue.close());
  const type = sql`select format_type(atttypid, null) as type from pg_attribute
    where attrelid = to_regclass('fields.documents_lines') and attname = 'amount'`;
  const isType = (expected: string) =>
    until(`amount is ${expected}`, async () => (await db.execute(type)).rows[0]?.type === expected);
  const owners = async () =>
    (await db.execute(sql`select distinct viewowner from pg_views where schemaname = 'fields'`)).rows;
  const before = await owners();
  await catalogue.note('documents', 'v2.2', [{ lines: [{ amount: 1 }] }]);
  await isType('numeric');
  await catalogue.note('documents', 'v2.2', [{ lines: [{ amount: 'n/a' }] }]);
  await isType('text');
  expect([await owners(), before.length]).toEqual([before, 1]);
  const analyst = await loginAs('metersync_analyst', warehouse);
  await analyst.db.execute(sql`select amount from fields.documents_lines`);
  expect(await judgeViews(writer.db)).toMatchObject({ state: 'ok' });

  await db.execute(
    sql`revoke execute on function metersync.make_typed_view(jsonb, boolean) from metersync_writer`,
  );
  const todo = expect.stringContaining('Grant it the role metersync_writer');
  expect(await judgeViews(writer.db)).toMatchObject({ state: 'warn', todo });
  await catalogue.note('documents', 'v2.2', [{ more: 1 }]);
  await until('the missing role is logged', () =>
    lines.some(({ msg }) => /may not make typed views/.test(msg)),
  );
  await catalogue.note('documents', 'v2.2', [{ other: 1 }]);
  await expect(refreshNow(writer.db)).rejects.toThrow(/may not make typed views.* Grant it the role/);
  expect(lines.filter(({ msg }) => /Grant it the role/.test(msg))).toHaveLength(1);
  expect(await refreshNow(db)).toMatchObject({ made: ['documents'] });
});

test('a view that is being read is changed later, and queries do not wait for long', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const { db } = warehouse;
  const { lines, log } = recorded();
  const catalogue = createFieldCatalogue({ db, onError: () => {} });
  onTestFinished(() => catalogue.close());
  await catalogue.note('documents', 'v2.2', [{ amount: 1 }]);
  await db.transaction(async (tx) => {
    await tx.execute(sql`select * from fields.documents`);
    await expect(refreshNow(db)).rejects.toThrow('a view is being read, or changed, right now: try again');
    const views = keepViews({ db, log, afterMs: 5 });
    onTestFinished(() => views.stop());
    await until('the delay is logged', () =>
      lines.some(({ msg }) => /is being read: .* made again later/.test(msg)),
    );
  });
  expect(await refreshNow(db)).toMatchObject({ made: ['documents'], blocked: [] });
});

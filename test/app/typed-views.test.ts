import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { judgeViews } from '../../app/doctor/warehouse.ts';
import { keepViews, refreshNow } from '../../app/typed-views.ts';
import { connectWarehouse } from '../../db/connect.ts';
import { createFieldCatalogue } from '../../db/fields/field-catalogue.ts';
import { readStatus } from '../../db/read/status.ts';
import { until } from '../support/poll.ts';
import { createWarehouse } from '../support/warehouse.ts';

function recorded() {
  const lines: { msg: string; level: number }[] = [];
  const log = pino({ level: 'debug' }, { write: (line) => void lines.push(JSON.parse(line)) });
  return { lines, log };
}

test('a worker makes views again when there are new fields, tells of what stands in the way and carries on', async () => {
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
        where attrelid = 'analytics.documents'::regclass and attname = ${column}`)
    ).rows[0]?.type;
  const isType = (column: string, type: string) =>
    until(`${column} is ${type}`, async () => (await typeOf(column)) === type);
  const said = (pattern: RegExp) => lines.filter(({ msg, level }) => level >= 40 && pattern.test(msg));

  await catalogue.note('documents', 'v2.2', [{ amount: 1 }]);
  await isType('amount', 'numeric');
  await db.execute(sql`create view public.mine as select amount from analytics.documents`);
  await catalogue.note('documents', 'v2.2', [{ amount: 'n/a' }]);
  await until(
    'it is told',
    () => said(/analytics\.documents cannot take .* of amount, as view mine was built/).length > 0,
  );
  await catalogue.note('documents', 'v2.2', [{ more: true }]);
  await isType('more', 'boolean');
  expect([await typeOf('amount'), said(/cannot take/).length]).toEqual(['numeric', 1]);
  await expect(refreshNow(db)).resolves.toMatchObject({ blocked: [{ by: ['view mine'] }] });
  const { blockedViews } = await readStatus(db);
  expect(blockedViews).toEqual([{ view: 'analytics.documents', columns: ['amount'], by: ['view mine'] }]);
  const told = { state: 'warn', saw: expect.stringContaining('as view mine was built on it') };
  expect(await judgeViews(db)).toMatchObject({
    ...told,
    todo: expect.stringMatching(/^Drop what was built/),
  });
  await db.transaction(async (tx) => {
    // The worker may be at it again: it does not see this before it is over.
    await tx.execute(sql`drop view public.mine`);
    const free = { state: 'warn', todo: expect.stringMatching(/^Run metersync views/) };
    expect(await judgeViews(tx)).toMatchObject(free);
  });
  await catalogue.note('documents', 'v2.2', [{ other: true }]);
  await isType('amount', 'text');
  await until('nothing stands in the way', async () => (await judgeViews(db)).state === 'ok');
});

test('a worker that may only write rows says who can make views, once', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const user = `writer_${randomUUID().replaceAll('-', '')}`;
  await warehouse.db.execute(sql.raw(`create role ${user} login password 'secret' in role metersync_writer`));
  onTestFinished(async () => void (await warehouse.db.execute(sql.raw(`drop role ${user}`))));
  const url = new URL(warehouse.url);
  [url.username, url.password] = [user, 'secret'];
  const login = connectWarehouse({ url: url.href, timeZone: 'UTC', max: 2, onError: () => {} });
  onTestFinished(() => login.close());
  const { lines, log } = recorded();
  const views = keepViews({ db: login.db, log, afterMs: 5 });
  onTestFinished(() => views.stop());
  const catalogue = createFieldCatalogue({ db: login.db, onNewField: views.changed, onError: () => {} });
  onTestFinished(() => catalogue.close());
  await catalogue.note('documents', 'v2.2', [{ amount: 1 }]);
  await until('it is told', () =>
    lines.some(({ msg }) => /run metersync views refresh as the owner/.test(msg)),
  );
  await catalogue.note('documents', 'v2.2', [{ more: 1 }]);
  await expect(refreshNow(login.db)).rejects.toThrow(/may not make views.*use the owner/);
  expect(lines.filter(({ msg }) => /as the owner/.test(msg))).toHaveLength(1);
  expect(await refreshNow(warehouse.db)).toMatchObject({ made: ['documents'] });
});

test('a view that is being read is changed later, and keeps nobody waiting for long', async () => {
  const warehouse = await createWarehouse();
  onTestFinished(() => warehouse.drop());
  const { db } = warehouse;
  const { lines, log } = recorded();
  const catalogue = createFieldCatalogue({ db, onError: () => {} });
  onTestFinished(() => catalogue.close());
  await catalogue.note('documents', 'v2.2', [{ amount: 1 }]);
  await db.transaction(async (tx) => {
    await tx.execute(sql`select * from analytics.documents`);
    await expect(refreshNow(db)).rejects.toThrow('a view is being read, or changed, right now: try again');
    const views = keepViews({ db, log, afterMs: 5 });
    onTestFinished(() => views.stop());
    await until('it is told', () => lines.some(({ msg }) => /is being read: .* made again later/.test(msg)));
  });
  expect(await refreshNow(db)).toMatchObject({ made: ['documents'], blocked: [] });
});

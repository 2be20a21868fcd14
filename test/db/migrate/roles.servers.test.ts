import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fitOf } from '../../../contract/schema-versions.ts';
import { refreshDataIssues } from '../../../db/checks/check-data.ts';
import { connectWarehouse, type Warehouse } from '../../../db/connection/connect.ts';
import { recordEvents } from '../../../db/events/record.ts';
import { migrateWarehouse } from '../../../db/migrate/migrate.ts';
import { readSchemaVersions } from '../../../db/migrate/migrations.ts';
import { readIntervals } from '../../../service/intervals.ts';
import { delivery, documentEvent } from '../../support/events.ts';
import { writeRecords } from '../../support/pages.ts';
import { began, writeReadings } from '../../support/readings.ts';
import { createWarehouse } from '../../support/warehouse.ts';

const users: string[] = [];
const opened: Warehouse[] = [];
const warehouse = await createWarehouse();
afterAll(async () => {
  await Promise.all(opened.map((one) => one.close()));
  for (const user of users) {
    await warehouse.db.execute(sql.raw(`drop owned by ${user}`));
    await warehouse.db.execute(sql.raw(`drop role ${user}`));
  }
  await warehouse.drop();
});

/** Creates a login of a user, with a role. */
async function loginAs(role: string | null): Promise<Warehouse> {
  const user = `user_${randomUUID().replaceAll('-', '')}`;
  const password = randomUUID();
  users.push(user);
  await warehouse.db.execute(
    sql.raw(
      `create role ${user} login password ${pg.escapeLiteral(password)}${role === null ? '' : ` in role ${role}`}`,
    ),
  );
  const url = new URL(warehouse.url);
  [url.username, url.password] = [user, password];
  const login = connectWarehouse({ url: url.href, timeZone: 'UTC', max: 2, onError: () => {} });
  opened.push(login);
  return login;
}

const refused = { cause: { code: '42501' } };
const attempt = (login: Warehouse, statement: string) => login.db.execute(sql.raw(statement));

describe('a user with the role of the writer', () => {
  let writer: Warehouse;
  beforeAll(async () => {
    writer = await loginAs('metersync_writer');
  });

  test('can do the work of the worker: write events, records with their history and readings of a new month', async () => {
    expect(fitOf(await readSchemaVersions(writer.db))).toBe('same');
    const id = randomUUID();
    await recordEvents(writer.db, [delivery(documentEvent('created', id, '2026-05-01T00:00:00.000001'))]);
    for (const note of ['first', 'second']) {
      const records = [{ id, updated: '2026-05-01T00:00:00.000001', note }];
      await writeRecords(writer, 'documents', records, { readAt: new Date().toISOString() });
    }
    const reading = {
      start: '2031-07-01T00:00:00',
      end: '2031-07-01T00:15:00',
      usage: '1',
      usageUnits: 'kWh',
    };
    const columns = readIntervals(JSON.stringify([reading]), null);
    expect(await writeReadings(writer, 'meter', began(1), columns)).toMatchObject({
      inserted: 1,
    });
    expect(await refreshDataIssues(writer.db, [randomUUID()])).toMatchObject({ opened: 0 });
    const kept = await warehouse.db.execute(sql`select from history.documents where id = ${id}::uuid`);
    expect(kept.rowCount).toBeGreaterThan(0);
  });

  test.each([
    'create table utility.mine (id int)',
    'create schema mine',
    'create view fields.mine as select 1',
    'create function fields.mine() returns int language sql as $$ select 1 $$',
    'drop view fields.documents',
    'alter table utility.documents add column mine int',
    'drop table utility.documents',
    'truncate metersync.journal',
    'create index on utility.documents (site_id)',
    "insert into metersync_migrations.schema_migrations (hash, created_at) values ('x', 1)",
    'create or replace function metersync.read_time(value text) returns timestamptz language sql as $$ select now() $$',
  ])('cannot: %s', async (statement) => {
    await expect(attempt(writer, statement)).rejects.toMatchObject(refused);
  });
});

describe('a user with the role of the analyst', () => {
  let analyst: Warehouse;
  beforeAll(async () => {
    analyst = await loginAs('metersync_analyst');
  });

  test.each(['utility.documents', 'utility.intervals', 'utility.usage_data'])('reads %s', async (table) => {
    await expect(attempt(analyst, `select * from ${table} limit 1`)).resolves.toBeDefined();
  });

  test('reads every view, and earlier states of the bills', async () => {
    const bill = { updated: '2026-05-01T00:00:00.000001', lineItems: [{}], usageData: [{}] };
    const [id, successor] = [randomUUID(), randomUUID()];
    await writeRecords(warehouse, 'documents', [{ ...bill, id, revisedDocumentId: successor }]);
    await writeRecords(warehouse, 'usageData', [
      { id: randomUUID(), updated: bill.updated, document: { id }, startDate: '2026-01-01', meter: 'm' },
    ]);
    const views = await analyst.db.execute<{ name: string }>(
      sql`select schemaname || '.' || viewname as name from pg_views where schemaname in ('analytics', 'fields', 'ops')`,
    );
    expect(views.rows.map(({ name }) => name)).toContain('analytics.bills');
    for (const { name } of views.rows)
      await expect(attempt(analyst, `select * from ${name}`), name).resolves.toBeDefined();
    await expect(attempt(analyst, 'select * from analytics.bills_as_of(now())')).resolves.toBeDefined();
  });

  test.each([
    'select * from metersync.events',
    'select * from metersync.rejected_records',
    'delete from utility.documents',
    "update utility.documents set raw = '{}'",
    'insert into utility.companies (id) values (gen_random_uuid())',
    "select metersync.ensure_interval_month('2031-01-01Z')",
    'create table utility.mine (id int)',
  ])('cannot: %s', async (statement) => {
    await expect(attempt(analyst, statement)).rejects.toMatchObject(refused);
  });
});

test('a user without a role cannot read anything', async () => {
  const nobody = await loginAs(null);
  for (const table of ['utility.documents', 'metersync.events'])
    await expect(attempt(nobody, `select * from ${table}`)).rejects.toMatchObject(refused);
});

describe('a migrator without the right to create roles', () => {
  const database = `own_${randomUUID().replaceAll('-', '')}`;
  const user = `user_${randomUUID().replaceAll('-', '')}`;
  let own: Warehouse;
  const opened: Warehouse[] = [];
  const loginTo = (username: string, password: string): Warehouse => {
    const url = new URL(warehouse.url);
    Object.assign(url, { username, password, pathname: `/${database}` });
    const login = connectWarehouse({ url: url.href, timeZone: 'UTC', max: 1, onError: () => {} });
    opened.push(login);
    return login;
  };
  beforeAll(async () => {
    users.push(user);
    const password = randomUUID();
    await warehouse.db.execute(sql.raw(`create role ${user} login password ${pg.escapeLiteral(password)}`));
    await warehouse.db.execute(sql.raw(`create database ${database} owner ${user}`));
    own = loginTo(user, password);
    await attempt(own, 'alter default privileges revoke execute on functions from public');
  });
  afterAll(async () => {
    await Promise.all(opened.map((one) => one.close()));
    await warehouse.db.execute(sql.raw(`drop database ${database} with (force)`));
  });

  test('migrates, and grants rights to existing roles', async () => {
    // Roles belong to the whole server, and the other warehouse created them.
    expect(await migrateWarehouse(own.db)).toMatchObject({ rolesMissing: [], unreadable: [] });
    const granted = await own.db.execute(
      sql`select has_table_privilege('metersync_analyst', 'utility.documents', 'select') as may`,
    );
    expect(granted.rows).toEqual([{ may: true }]);
  });

  test("grants the functions that views call, even if the owner's functions are not granted to everybody", async () => {
    const [user, password] = [`user_${randomUUID().replaceAll('-', '')}`, randomUUID()];
    users.push(user);
    await warehouse.db.execute(
      sql.raw(`create role ${user} login password '${password}' in role metersync_analyst`),
    );
    const analyst = loginTo(user, password);
    const views = await analyst.db.execute<{ name: string }>(
      sql`select schemaname || '.' || viewname as name from pg_views where schemaname in ('analytics', 'fields', 'ops')`,
    );
    for (const { name } of views.rows)
      await expect(attempt(analyst, `select * from ${name} limit 0`), name).resolves.toBeDefined();
    await expect(attempt(analyst, 'select * from analytics.bills_as_of(now())')).resolves.toBeDefined();
  });

  test("leaves another user's relations and functions unchanged, and names what analysts cannot read", async () => {
    const [jane, password] = [`user_${randomUUID().replaceAll('-', '')}`, randomUUID()];
    users.push(jane);
    await warehouse.db.execute(sql.raw(`create role ${jane} login password '${password}'`));
    await attempt(own, `grant usage, create on schema analytics, utility to ${jane}`);
    const hers = loginTo(jane, password);
    for (const statement of [
      'create view analytics."Jane\'s" as select 1 as bill_id',
      'create view analytics.shared as select 1 as n',
      'grant select on analytics.shared to metersync_analyst',
      'create sequence utility.hers',
      'create function analytics.hers() returns int language sql as $$ select 1 $$',
    ])
      await attempt(hers, statement);
    await attempt(own, `update metersync_migrations.views set version = 'earlier'`);
    expect(await migrateWarehouse(own.db)).toMatchObject({ unreadable: [`analytics."Jane's"`] });
  });
});

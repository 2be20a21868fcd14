import { sql } from 'drizzle-orm';
import pg from 'pg';
import { expect, test } from 'vitest';
import { connectWarehouse } from '../../db/connection/connect.ts';
import { migrateWarehouse } from '../../db/migrate/migrate.ts';
import { startEmbedded } from '../../embedded/start.ts';
import { temporaryFolder } from '../support/folder.ts';
import { forFile } from '../support/for-file.ts';
import { putData } from './owner-process.ts';

const folder = await forFile(temporaryFolder());
putData(folder.path);
/** One stack for all tests; each test has its own databases. */
const stack = await forFile(startEmbedded({ dir: folder.path, postgres: true, temporal: false }));
if (stack.postgres === undefined) throw new Error('no Postgres');
const postgres = stack.postgres;

async function query(connectionString: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const refused = expect.objectContaining({ code: '42501' });

test('the role of a database owns it, is not a superuser, and has no access to other databases', async () => {
  const warehouse = await postgres.ensureDatabase('metersync', { createRoles: true });
  const sandbox = await postgres.ensureDatabase('sandbox');
  await query(warehouse, 'create table bills (amount numeric); insert into bills values (1)');

  for (const url of [warehouse, sandbox]) {
    const [role] = await query(
      url,
      'select rolsuper, rolcreatedb from pg_roles where rolname = current_user',
    );
    expect(role).toEqual({ rolsuper: false, rolcreatedb: false });
    await query(url, 'create table mine (line text)');
    for (const statement of [
      "copy mine from program 'id; env'",
      "copy mine from '/etc/passwd'",
      "select pg_read_file('/etc/passwd')",
      'create role mightier superuser',
      'alter role current_user superuser',
      'grant pg_execute_server_program to current_user',
      "alter system set archive_command = 'id'",
    ])
      await expect(query(url, statement), statement).rejects.toEqual(refused);
  }
  const password = (url: string) => new URL(url).password;
  const passwords = [postgres.superuserUrl('postgres'), warehouse, sandbox].map(password);
  expect(new Set(passwords).size).toBe(3);

  const elsewhere = (url: string, database: string) =>
    Object.assign(new URL(url), { pathname: database }).href;
  await expect(query(elsewhere(warehouse, 'sandbox'), 'select 1')).rejects.toEqual(refused);
  await expect(query(elsewhere(sandbox, 'metersync'), 'select * from bills')).rejects.toEqual(refused);
  for (const url of [warehouse, sandbox]) {
    await expect(query(elsewhere(url, 'postgres'), 'select 1')).rejects.toEqual(refused);
  }
});

test('the URL of a database is the same for simultaneous and later callers', async () => {
  const urls = await Promise.all(Array.from({ length: 6 }, () => postgres.ensureDatabase('together')));
  expect(new Set(urls).size).toBe(1);
  expect(await query(urls[0] ?? '', 'select current_user::text as me')).toEqual([{ me: 'together_owner' }]);
  expect(await postgres.ensureDatabase('together')).toBe(urls[0]);
});

test('the owner of a warehouse migrates it with its roles, and creates logins that have them', async () => {
  const url = await postgres.ensureDatabase('migrated', { createRoles: true });
  expect(await migrate(url)).toMatchObject({ rolesMissing: [] });
  await expectAnalyst(url);
});

async function migrate(url: string) {
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 1, onError: () => {} });
  try {
    const done = await migrateWarehouse(warehouse.db);
    await warehouse.db.execute(sql`select count(*) from utility.companies`);
    return done;
  } finally {
    await warehouse.close();
  }
}

/** Expects that an analyst's login, made as docs/security.md says, can read and not write. */
async function expectAnalyst(url: string): Promise<void> {
  await query(url, "create role jane login password 'of jane' in role metersync_analyst");
  const jane = Object.assign(new URL(url), { username: 'jane', password: 'of jane' }).href;
  expect(await query(jane, 'select count(*)::int as n from utility.companies')).toEqual([{ n: 0 }]);
  await expect(query(jane, 'delete from utility.companies')).rejects.toEqual(refused);
}

test('sessions search the given schemas of the database in their order', async () => {
  const searchPath = ['$user', 'public', 'analytics', 'ops'];
  const url = await postgres.ensureDatabase('searched', { createRoles: true, searchPath });
  await query(url, 'create schema ops; create table ops.bills as select 2 as n');
  expect(await query(url, 'select n from bills')).toEqual([{ n: 2 }]);
  await query(url, 'create schema analytics; create table analytics.bills as select 1 as n');
  await postgres.ensureDatabase('searched', { createRoles: true, searchPath });
  expect(await query(url, 'select n from bills')).toEqual([{ n: 1 }]);
});

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import pg from 'pg';
import { afterAll, expect, inject, test } from 'vitest';
import { runCommand } from '../support/command.ts';
import { createDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';

const logins = ['metersync_migrator', 'metersync_worker', 'metersync_nobody'];

/** Runs statements as the superuser, with the options of its session. */
async function asSuperuser(url: string, statements: string, options = ''): Promise<void> {
  const client = new pg.Client({ connectionString: url, options });
  await client.connect();
  try {
    await client.query(statements);
  } finally {
    await client.end();
  }
}

/** Runs docker/roles.sql with the passwords of the compose file. */
async function makeRoles(migrator: string, worker: string): Promise<void> {
  const script = await readFile(resolve(import.meta.dirname, '../../docker/roles.sql'), 'utf8');
  const options = `-c metersync.migrator_password=${migrator} -c metersync.worker_password=${worker}`;
  await asSuperuser(database.url, script, options);
}

function urlOf(user: string, password: string): string {
  const url = new URL(database.url);
  [url.username, url.password] = [user, password];
  return url.href;
}

async function ask<T extends object>(url: string, statement: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T>(statement)).rows;
  } finally {
    await client.end();
  }
}

const metersync = (command: readonly string[], databaseUrl: string) =>
  runCommand(command, { env: { DATABASE_URL: databaseUrl, METERSYNC_DIR: folder.path } });

const [database, folder] = await Promise.all([createDatabase('compose'), temporaryFolder()]);
await makeRoles('first', 'second');
afterAll(async () => {
  await database.drop();
  for (const login of logins) await asSuperuser(inject('postgresUrl'), `drop role if exists ${login}`);
  await folder.remove();
});

test('the migrator creates the warehouse without being a superuser, and the worker can use it', async () => {
  const { status, stdout, stderr } = await metersync(['migrate'], urlOf('metersync_migrator', 'first'));
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  // The output has no warning about missing roles.
  expect(stdout.trim()).toMatch(/^Applied \d+ migrations?\.$/);
  const worker = urlOf('metersync_worker', 'second');
  expect(await metersync(['status', '--json'], worker)).toMatchObject({ status: 0, stderr: '' });
  expect(await ask(worker, "select metersync.ensure_interval_month('2031-05-01')")).toHaveLength(1);
  const rights = 'select rolsuper, rolcreaterole, rolcreatedb from pg_roles where rolname = current_user';
  const none = [{ rolsuper: false, rolcreaterole: false, rolcreatedb: false }];
  expect(await ask(worker, rights)).toEqual(none);
  expect(await ask(urlOf('metersync_migrator', 'first'), rights)).toEqual(none);
});

test.each(['create schema mine', 'drop table utility.documents', "copy (select 1) to program 'id'"])(
  'the worker cannot: %s',
  async (statement) => {
    await expect(ask(urlOf('metersync_worker', 'second'), statement)).rejects.toMatchObject({
      code: '42501',
    });
  },
);

test('a login without a role cannot read anything', async () => {
  await asSuperuser(database.url, "create role metersync_nobody login password 'third'");
  await expect(ask(urlOf('metersync_nobody', 'third'), 'select 1')).rejects.toMatchObject({ code: '42501' });
  await asSuperuser(database.url, 'grant metersync_analyst to metersync_nobody');
  expect(await ask(urlOf('metersync_nobody', 'third'), 'select from utility.documents')).toEqual([]);
});

test('starting again with other passwords changes the passwords and keeps the roles', async () => {
  await makeRoles('another', 'second');
  await expect(ask(urlOf('metersync_migrator', 'first'), 'select 1')).rejects.toMatchObject({
    code: '28P01',
  });
  expect(await metersync(['migrate'], urlOf('metersync_migrator', 'another'))).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('up to date'),
  });
  expect(await metersync(['status'], urlOf('metersync_worker', 'second'))).toMatchObject({ status: 0 });
});

test('the SQL of the guide makes logins that migrate, sync and read', async () => {
  const guide = await readFile(resolve(import.meta.dirname, '../../docs/running.md'), 'utf8');
  const sql = /^### Logins$.*?```sql\n(.*?)```/ms.exec(guide)?.[1] ?? '';
  // Roles belong to the whole server, so those of the test have names of their own.
  const names: Readonly<Record<string, string>> = {
    metersync_migrator: 'guide_migrator',
    metersync_worker: 'guide_worker',
    jane: 'guide_analyst',
    'database warehouse': 'database guide_warehouse',
  };
  const statements = Object.entries(names)
    .reduce((text, [from, to]) => text.replaceAll(from, to), sql)
    .replaceAll('…', 'geheim')
    .replace(/^--.*\n/gm, '')
    .split(/;\n/)
    .filter((statement) => statement.trim() !== '');
  expect(statements).toHaveLength(10);
  const superuser = inject('postgresUrl');
  const url = (user: string) => {
    const at = new URL(superuser);
    [at.username, at.password, at.pathname] = [user, 'geheim', '/guide_warehouse'];
    return at.href;
  };
  try {
    for (const statement of statements) {
      // Migrations of other tests have already created the roles without a login.
      const exists = /^create role \w+ nologin$/.test(statement);
      await asSuperuser(superuser, statement).catch((error: { code?: string }) => {
        if (!exists || error.code !== '42710') throw error;
      });
    }
    const migrated = await metersync(['migrate'], url('guide_migrator'));
    expect(migrated).toMatchObject({ status: 0, stderr: '' });
    expect(migrated.stdout.trim()).toMatch(/^Applied \d+ migrations?\.$/);
    expect(await metersync(['status'], url('guide_worker'))).toMatchObject({ status: 0, stderr: '' });
    await expect(ask(url('guide_worker'), 'create schema mine')).rejects.toMatchObject({ code: '42501' });
    // The search path finds the view.
    expect(await ask(url('guide_analyst'), 'select * from bills')).toEqual([]);
    await expect(ask(url('guide_analyst'), 'delete from utility.documents')).rejects.toMatchObject({
      code: '42501',
    });
  } finally {
    await asSuperuser(superuser, 'drop database if exists guide_warehouse');
    for (const login of ['guide_migrator', 'guide_worker', 'guide_analyst'])
      await asSuperuser(superuser, `drop role if exists ${login}`);
  }
});

test('roles.sql fails without passwords', async () => {
  await expect(
    asSuperuser(database.url, await readFile(resolve(import.meta.dirname, '../../docker/roles.sql'), 'utf8')),
  ).rejects.toThrow('metersync.migrator_password');
});

import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { knownMigrations } from '../../db/known-migrations.ts';
import { statementCost } from '../../db/statement-locks.ts';
import { createWarehouse } from '../support/warehouse.ts';

let warehouse: Awaited<ReturnType<typeof createWarehouse>>;
beforeAll(async () => {
  warehouse = await createWarehouse();
  for (const statement of [
    'create schema s',
    'create table s.a (id integer primary key, b integer, c text)',
    'create table s.b (id integer primary key, a integer)',
    'create table s.p (id integer, at date) partition by range (at)',
    'create view s.v as select 1 as one',
    'create index b_a on s.b (a)',
    'alter table s.b add constraint positive check (a > 0) not valid',
    'create function s.f() returns trigger language plpgsql as $$ begin return new; end $$',
  ])
    await warehouse.db.execute(sql.raw(statement));
});
afterAll(() => warehouse.drop());

const statements = [
  'alter table s.a add column d text',
  'alter table "s"."a" add column "d" integer default 1 not null',
  'alter table s.a add column d uuid default gen_random_uuid()',
  'alter table s.a add column d bigserial',
  'alter table s.a add column d integer generated always as identity',
  'alter table s.a add column d integer generated always as (b + 1) stored',
  'alter table s.a add column d timestamp default now()',
  'alter table s.a drop column b',
  'alter table s.a alter column b set data type bigint',
  'alter table s.a alter column b type numeric(10, 2), add column d text',
  'alter table s.a alter column b set not null',
  'alter table s.a alter column c set statistics 500',
  'alter table s.a alter column c set compression pglz',
  'alter table s.a set (fillfactor = 90)',
  'alter table s.a set unlogged',
  'alter table s.a add constraint above check (b > 0) not valid',
  'alter table s.b validate constraint positive',
  'alter table s.b add constraint ref foreign key (a) references s.a (id)',
  'alter table s.b add foreign key (a) references s.a (id) not valid',
  'create index on_b on s.a (b)',
  'create unique index if not exists on_b on s.a using btree (b) where b > 0',
  'create table s.c (id integer, a integer references s.a (id))',
  "create table s.p1 partition of s.p for values from ('2026-01-01') to ('2026-02-01')",
  'create or replace view s.v as select 1 as one',
  'create trigger t before update on s.a for each row execute function s.f()',
  "-- What it is for.\ncomment on column s.a.b is 'b; c'",
  "comment on table s.a is 'a'",
  'insert into s.a (id) values (1)',
  'update s.a set b = 1',
  'delete from s.a',
  'truncate s.a',
  'drop table s.b',
  'drop view s.v',
  'create function s.g() returns integer language sql as $$ select 1 $$',
  'grant select on s.a to metersync_analyst',
];

const rank = [
  'AccessShareLock',
  'RowShareLock',
  'RowExclusiveLock',
  'ShareUpdateExclusiveLock',
  'ShareLock',
  'ShareRowExclusiveLock',
  'ExclusiveLock',
  'AccessExclusiveLock',
];
const named = (mode: string) =>
  mode
    .replace(/Lock$/, '')
    .replace(/(?<=[a-z])(?=[A-Z])/g, ' ')
    .toUpperCase();

test.each(statements)('%s: its locks and rewrites are those of Postgres', async (statement) => {
  const client = await warehouse.pool.connect();
  const read = async (text: string) => (await client.query(text)).rows;
  const files = `select oid::regclass::text as name, relfilenode::text as file from pg_class
    where relnamespace = 's'::regnamespace and relkind in ('r', 'v', 'p') order by 1`;
  try {
    await client.query('begin');
    const before = await read(files);
    await client.query(statement);
    const held = await read(`select relation::regclass::text as relation, mode from pg_locks
      where pid = pg_backend_pid() and locktype = 'relation' and relation >= 16384`);
    const after = await read(files);
    const locks = before.flatMap(({ name }) => {
      const modes = held.filter(({ relation }) => relation === name).map(({ mode }) => rank.indexOf(mode));
      const strongest = rank[Math.max(...modes, 0)] ?? '';
      return rank.indexOf(strongest) < 2 ? [] : [{ relation: name, mode: named(strongest) }];
    });
    const rewritten = before.filter(({ name, file }) =>
      after.some((now) => now.name === name && now.file !== file),
    );
    const cost = statementCost(statement);
    // A table that a statement drops has no name left, and truncating writes nothing.
    if (!statement.startsWith('drop'))
      expect(cost.locks?.toSorted((a, b) => (a.relation < b.relation ? -1 : 1))).toEqual(locks);
    else expect(held.map(({ mode }) => mode)).toContain('AccessExclusiveLock');
    if (!statement.startsWith('truncate')) expect(cost.rewrites).toEqual(rewritten.map(({ name }) => name));
  } finally {
    await client.query('rollback');
    client.release();
  }
});

test('every statement of a migration of a released schema is judged', () => {
  const [, ...migrations] = knownMigrations();
  for (const { statements } of migrations)
    for (const statement of statements) expect(statementCost(statement).locks, statement).not.toBeNull();
});

test('a statement of another kind is not judged', () => {
  expect(statementCost('do $$ begin null; end $$').locks).toBeNull();
  expect(statementCost("select set_config('a.b', 'c', false)").locks).toBeNull();
});

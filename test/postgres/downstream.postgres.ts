import { expect } from 'vitest';
import { fault } from '../faults/fault.ts';
import { runCommand } from '../support/command.ts';
import { until } from '../support/poll.ts';
import { administer, may, withPostgres } from './warehouse.ts';

/** Ends a copy that hangs. Otherwise the state of the copy decides how long the test waits. */
const within = { timeoutMs: 300_000, everyMs: 200 };

/** The URLs of both warehouses, and the port of the first. */
interface Copied {
  readonly from: string;
  readonly to: string;
  readonly port: number;
}

fault<Copied>({
  name: 'P8',
  title: 'a second Postgres follows by logical replication',
  eachSeed: true,
  alarms: { may },
  around: (work) =>
    withPostgres({ settings: ['wal_level = logical'] }, ({ part, users, port }) =>
      withPostgres({}, async (other) => {
        await users.ensureDatabase('metersync');
        await other.users.ensureDatabase('metersync');
        const [from, to] = [users.superuserUrl('metersync'), other.users.superuserUrl('metersync')];
        return await work({ postgres: { part, databaseUrl: from } }, { from, to, port });
      }),
    ),
  prepare: async ({ env }, { from, to }) => {
    const made = await runCommand(['migrate'], { env: { ...env, DATABASE_URL: to } });
    expect(made).toMatchObject({ status: 0 });
    await administer(from, [
      'create publication metersync for tables in schema utility with (publish_via_partition_root = true)',
    ]);
    // Workers create a month's partition at its first reading. The copy has none, so it needs a default.
    await administer(to, ['create table utility.intervals_all partition of utility.intervals default']);
  },
  backfill: 'during',
  loadSeconds: 20,
  // Changes happen meanwhile, so the first copy and the stream of changes overlap.
  strike: async ({ made: { from, to, port } }) => {
    const { username, password } = new URL(from);
    await administer(to, [
      `create subscription metersync
      connection 'host=127.0.0.1 port=${port} dbname=metersync user=${username} password=${password}'
      publication metersync`,
    ]);
  },
  check: async (_figures, _rig, { from, to }) => {
    await caughtUp(from, to);
    const tables = await contents(from);
    expect(await contents(to)).toEqual(tables);
    const rows = tables.reduce((sum, table) => sum + table.rows, 0);
    expect(rows).toBeGreaterThan(1_000);
    await administer(to, ['drop subscription metersync']);
    return `${rows.toLocaleString('en')} rows of ${tables.length} tables copied`;
  },
});

/** Waits until every table is copied and all changes that the source has committed so far are applied. */
async function caughtUp(from: string, to: string): Promise<void> {
  await until(
    'every table is copied',
    async () => {
      const left = await administer(to, [`select from pg_subscription_rel where srsubstate <> 'r'`]);
      return left.length === 0;
    },
    within,
  );
  const [now] = await administer<{ lsn: string }>(from, ['select pg_current_wal_lsn() as lsn']);
  await until(
    'all changes are applied',
    async () => {
      const [slot] = await administer<{ done: boolean }>(from, [
        `select confirmed_flush_lsn >= '${now?.lsn}' as done from pg_replication_slots
        where slot_name = 'metersync'`,
      ]);
      return slot?.done ?? false;
    },
    within,
  );
}

interface Content {
  readonly name: string;
  readonly rows: number;
  readonly digest: string;
}

/** Counts and digests the rows of each table of records. */
async function contents(url: string): Promise<Content[]> {
  const tables = await administer<{ name: string }>(url, [
    `select c.oid::regclass::text as name from pg_class c
    where c.relnamespace = 'utility'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    order by 1`,
  ]);
  const read: Content[] = [];
  for (const { name } of tables) {
    const [found] = await administer<{ rows: number; digest: string }>(url, [
      `select count(*)::int as rows, md5(string_agg(md5(t::text), '' order by md5(t::text))) as digest from ${name} t`,
    ]);
    if (found !== undefined) read.push({ name, ...found });
  }
  return read;
}

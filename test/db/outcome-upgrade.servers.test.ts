import { sql } from 'drizzle-orm';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { expect, onTestFinished, test } from 'vitest';
import { connectWarehouse } from '../../db/connection/connect.ts';
import { planMigration } from '../../db/migrate/migration-plan.ts';
import { migrationsSchema, migrationsTable } from '../../db/migrate/migrations-table.ts';
import { cases } from '../support/cases.ts';
import { runCommand } from '../support/command.ts';
import { createDatabase } from '../support/database.ts';
import { earlierMigrations } from '../support/migrations.ts';

/** The migrations of 0.1.0, which did not store outcomes. */
const before = 1;

/** The view of version 0.1.0, which computed the outcomes. It says why events are ignored, as the view does now. */
const workedOut = sql`
  create view metersync.events as
  select e.id, e.type, e.kind, e.record_id, e.company_id, e.occurred_at, e.range_start, e.range_end,
    e.received_at, e.recorded_at, e.payload, e.body,
    case
      when e.arrived_as <> 'pending' then e.arrived_as
      when done.outcome = 'superseded' and e.type = 'document.deleted.v2' then 'applied'
      else coalesce(done.outcome, 'pending')
    end as outcome,
    case
      when e.arrived_as = 'applied' then e.recorded_at
      when done.outcome in ('applied', 'superseded') then done.settled_at
    end as applied_at,
    coalesce(
      e.error, done.error, waits.error,
      case when e.arrived_as = 'ignored' then 'metersync does not use events of this type' end
    ) as error,
    coalesce(e.error_code, done.error_code, waits.error_code) as error_code,
    coalesce(done.attempts, waits.attempts, 0) as attempts,
    case when waits.attempts > 0 then waits.due_at end as next_attempt_at,
    e.interval_count, done.intervals_found, e.workflow_id, e.workflow_run_id, e.payload_dropped_at,
    done.settled_at
  from metersync.journal e
    left join lateral (
      select s.outcome, s.settled_at, s.error, s.error_code, s.attempts, s.intervals_found
      from metersync.settlements s
      where e.arrived_as = 'pending'
        and s.kind = e.kind
        and s.record_id = case e.kind when 'interval' then e.id else e.record_id end
        and e.recorded_at between s.since and s.read_at
        and s.shown >= coalesce(e.occurred_at, '-infinity')
        and not (s.updates_only and e.type = 'document.deleted.v2')
      order by s.outcome in ('missing', 'dead'), s.settled_at, s.shown
      limit 1
    ) done on true
    left join lateral (
      select r.attempts, r.due_at, r.error, r.error_code
      from metersync.stale_records r
      where e.arrived_as = 'pending'
        and done.outcome is null
        and r.key = e.kind || '/' || case e.kind when 'interval' then e.id else e.record_id end
      offset 0
    ) waits on true`;

/** Events of a few records. Each record is read, given up, deleted or left unchanged at a random time. */
const story = [
  sql`
    insert into metersync.journal (id, type, kind, record_id, company_id, occurred_at, received_at, recorded_at,
      payload, body, arrived_as, error, interval_count, payload_dropped_at)
    select 'event ' || n, type, kind, 'record ' || n % 40, gen_random_uuid(), now() - interval '1 s' * (random() * 500)::int,
      at, at, case when n % 7 > 1 then '{"n": 1}'::jsonb end, case when n % 7 = 1 then '\\x00'::bytea end,
      case when n % 11 = 0 then 'dead' when n % 13 = 0 then 'ignored' when n % 17 = 0 then 'applied' else 'pending' end,
      case when n % 11 = 0 then 'unreadable' end, n % 5, case when n % 7 = 0 then now() end
    from generate_series(1, ${cases(800, 8_000)}::int) n
      cross join lateral (select now() - interval '1 s' * (random() * 500)::int as at where n > 0) came
      cross join lateral (
        select (array['document', 'connection', 'interval'])[1 + n % 3] as kind,
          (array['document.updated.v2', 'document.deleted.v2'])[1 + (n % 6 = 0)::int] as type
      ) what`,
  sql`
    insert into metersync.settlements (kind, record_id, owner, since, read_at, shown, settled_at, outcome, updates_only,
      error, error_code, attempts, intervals_reported, intervals_found)
    select kind, case kind when 'interval' then id else record_id end, 'owner', since, since + interval '1 s' * (random() * 90)::int,
      case when n % 4 = 0 then 'infinity' else now() - interval '1 s' * (random() * 500)::int end,
      now() - interval '3 days' * random(), outcome, outcome = 'superseded' and n % 2 = 0,
      case when outcome in ('dead', 'missing') then 'why' end, case when outcome = 'missing' then 'CODE' end, n % 3,
      interval_count, case when kind = 'interval' then n % 4 end
    from metersync.journal
      cross join generate_series(1, 2) n
      cross join lateral (
        select (array['applied', 'applied', 'superseded', 'dead', 'missing'])[1 + (random() * 4.99)::int % 5] as outcome,
          recorded_at - interval '1 s' * (random() * 30)::int as since
        where n > 0
      ) so
    where random() < 0.6`,
  sql`
    insert into metersync.stale_records (kind, record_id, owner, events, since, last_event_at, due_at, attempts, error, error_code)
    select kind, case kind when 'interval' then id else record_id end, 'owner', count(*), min(recorded_at),
      max(recorded_at), now() + interval '1 hour', 1 + count(*) % 2, 'waits', 'SERVICE_ERROR'
    from metersync.events
    where outcome = 'pending'
    group by 1, 2`,
];

test('an upgrade keeps the outcome of each event, and the views and grants of users', async () => {
  const { url, drop } = await createDatabase('outcomes');
  const { db, close } = connectWarehouse({ url, timeZone: 'UTC', max: 2, onError: () => {} });
  onTestFinished(async () => {
    await close();
    await drop();
  });
  const seed = Math.random();
  await migrate(db, { migrationsFolder: earlierMigrations(before), migrationsSchema, migrationsTable });
  await db.transaction(async (tx) => {
    await tx.execute(sql`select setseed(${seed}::float8)`);
    await tx.execute(sql`create table metersync_migrations.floor as select 1 as floor`);
    await tx.execute(workedOut);
    await tx.execute(sql`create schema if not exists ops`);
    await tx.execute(sql`
      create view ops.freshness as
      select s.outcome, j.arrived_as from metersync.journal j, metersync.settlements s`);
    for (const statement of story) await tx.execute(statement);
    await tx.execute(sql`create view public.mine as select id, outcome from metersync.events`);
    await tx.execute(sql`grant select on metersync.events to public`);
  });
  await db.execute(sql`analyze metersync.journal`);
  const told = async () => (await db.execute(sql`select * from metersync.events order by id`)).rows;
  const outcomes = async () =>
    (await db.execute(sql`select outcome, count(*)::int as events from public.mine group by 1 order by 1`))
      .rows;
  const earlier = await told();
  const counted = await outcomes();
  expect(counted.map(({ outcome }) => outcome)).toEqual([
    'applied',
    'dead',
    'ignored',
    'missing',
    'pending',
    'superseded',
  ]);
  expect((await planMigration(db)).rewrites).toContainEqual({
    table: 'metersync.journal',
    rows: earlier.length,
    rowsPerSecond: 15_000,
  });
  await db.execute(sql`update pg_class set reltuples = 1000000 where oid = 'metersync.journal'::regclass`);
  expect(await runCommand(['migrate'], { env: { DATABASE_URL: url } })).toMatchObject({
    status: 0,
    stderr: expect.stringContaining('with about 1,000,000 rows. This takes up to 67 s on two cores.'),
  });
  expect(await told(), `seed ${seed}`).toEqual(earlier);
  expect(await outcomes()).toEqual(counted);
  const { rows } = await db.execute(sql`
    select
      has_table_privilege('public', 'metersync.events', 'select') as granted,
      to_regclass('metersync.settlements') is null as gone,
      (select count(*) from metersync.event_payloads)::int as payloads`);
  const payloads = earlier.filter(({ payload, body }) => payload !== null || body !== null).length;
  expect(rows).toEqual([{ granted: true, gone: true, payloads }]);
}, 60_000);

import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { connectWarehouse } from '../../db/connection/connect.ts';
import { runProcess, startCommand } from '../support/command-process.ts';
import { createDatabase } from '../support/database.ts';
import { until } from '../support/poll.ts';
import { contentOf } from './older-warehouse.ts';

/** The number of events in the warehouse of the older release. */
const events = 1_000_000;

/** Ends a run that hangs. A run that passes does not depend on this time. */
const within = { timeoutMs: 300_000, everyMs: 100 };

/** Three events of each record. One read settled all of them, or of some records only the first two. */
const journal = sql`
  insert into metersync.journal (id, type, kind, record_id, company_id, occurred_at, received_at, recorded_at, payload,
    arrived_as, error)
  select 'large ' || n, 'document.updated.v2', 'document', md5('record' || n / 3)::uuid::text,
    md5('company' || n % 500)::uuid, at, at, at,
    jsonb_build_object('type', 'document.updated.v2', 'document', md5('record' || n / 3), 'invoiceId', 'invoice ' || n,
      'updated', at),
    case when n % 1000 = 0 then 'dead' else 'pending' end, case when n % 1000 = 0 then 'it is unreadable' end
  from generate_series(1, ${events}::int) n
    cross join lateral (select now() - interval '30 days' + n * interval '2 s' as at where n > 0) came`;

const settlements = sql`
  insert into metersync.settlements (kind, record_id, owner, since, read_at, shown, settled_at, outcome, attempts)
  select kind, record_id, min(company_id::text), min(recorded_at),
    max(recorded_at) - case when hashtext(record_id) % 50 = 0 then interval '1 s' else '0 s' end, 'infinity',
    max(recorded_at) + interval '20 s', 'applied', 0
  from metersync.journal
  where arrived_as = 'pending'
  group by kind, record_id`;

const staleRecords = sql`
  insert into metersync.stale_records (kind, record_id, owner, events, since, last_event_at, due_at)
  select kind, record_id, min(company_id::text), count(*), min(recorded_at), max(recorded_at), now()
  from metersync.events
  where outcome = 'pending'
  group by kind, record_id`;

/**
 * Upgrades an older release's warehouse with a million events; kills the first migration during the rewrite
 * of the events. Returns how long the second took, and the longest time that it announced.
 */
export async function upgradeLarge(checkout: string): Promise<string> {
  const { url, drop } = await createDatabase('large');
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 2, onError: () => {} });
  const { db } = warehouse;
  const env = { DATABASE_URL: url };
  const rewriting = async (): Promise<number> => {
    const { rows } = await db.execute<{ sessions: number }>(sql`
      select count(*)::int as sessions from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and query ~ 'insert into metersync.journal'`);
    return rows[0]?.sessions ?? 0;
  };
  try {
    expect(await runProcess(['migrate'], { env, checkout })).toMatchObject({ status: 0 });
    for (const statement of [journal, settlements]) await db.execute(statement);
    await db.execute(sql`vacuum analyze`);
    await db.execute(staleRecords);
    const before = await contentOf(warehouse);
    expect(before.find(({ name }) => name === 'metersync.events')?.rows).toBe(events);
    const killed = startCommand(['migrate'], { env });
    await killed.printed(/metersync\.journal is rewritten/);
    await until('the journal is written anew', async () => (await rewriting()) > 0, within);
    await killed.end('SIGKILL');
    await until('Postgres has ended its statement', async () => (await rewriting()) === 0, within);
    const startedAt = performance.now();
    const { status, stderr } = await runProcess(['migrate'], { env });
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    expect(status, stderr).toBe(0);
    expect(await contentOf(warehouse, before)).toEqual(before);
    return `${events.toLocaleString('en')} events upgraded in ${seconds} s, ${/up to (\d+ \w+) on/.exec(stderr)?.[1]} were announced as the most`;
  } finally {
    await warehouse.close();
    await drop();
  }
}

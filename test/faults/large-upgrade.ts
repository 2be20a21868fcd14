import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { connectWarehouse } from '../../db/connection/connect.ts';
import { runProcess, startCommand } from '../support/command-process.ts';
import { createDatabase } from '../support/database.ts';
import { until } from '../support/poll.ts';
import { contentOf } from './older-warehouse.ts';

/** The number of events in the warehouse of 0.2, and of its documents. */
const events = 1_000_000;
const documents = 200_000;

/** Ends a run that hangs. A run that passes does not depend on this time. */
const within = { timeoutMs: 300_000, everyMs: 100 };

/** Events of 200,000 records, of which the last of a record waits, or was applied. */
const journal = sql`
  insert into metersync.journal (id, type, kind, record_id, company_id, occurred_at, received_at, recorded_at,
    settled_at, outcome)
  select 'large ' || n, 'document.updated.v2', 'document', md5('record' || n / 5)::uuid::text,
    md5('company' || n % 500)::uuid, at, at, at, case when waits then null else at + interval '20 s' end,
    case when waits then 'pending' else 'applied' end
  from generate_series(1, ${events}::int) n
    cross join lateral (select now() - interval '30 days' + n * interval '2 s' as at, n % 50 = 49 as waits) came`;

const payloads = sql`
  insert into metersync.event_payloads (id, payload)
  select id, jsonb_build_object('id', record_id, 'updated', occurred_at)
  from metersync.journal`;

const staleRecords = sql`
  insert into metersync.stale_records (kind, record_id, owner, events, since, last_event_at, wanted, due_at)
  select kind, record_id, min(company_id::text), count(*), min(recorded_at), max(recorded_at), max(occurred_at), now()
  from metersync.journal
  where outcome = 'pending'
  group by kind, record_id`;

/** Documents that were read, announced by events that wait, or deleted by an event or by a proof; with usage. */
const documentsWithHints = sql`
  insert into utility.documents (id, company_id, created, updated, raw_updated, raw, synced_at, deleted_at, deleted_reason)
  select md5('record' || n)::uuid, md5('company' || n % 500)::uuid, at, coalesce(announced, at), at,
    jsonb_build_object('id', md5('record' || n)::uuid, 'created', at, 'updated', at, 'note', repeat('x', 2000)),
    now(), case when n % 100 < 2 then now() end, case n % 100 when 0 then 'event' when 1 then 'absent' end
  from generate_series(1, ${documents}::int) n
    cross join lateral (select '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 s' as at where n > 0) read
    left join lateral (
      select max(occurred_at) as announced
      from metersync.journal
      where record_id = md5('record' || n)::uuid::text
        and outcome = 'pending'
    ) events on true`;

const usage = sql`
  insert into utility.usage_data (id, company_id, document_id, raw, synced_at, deleted_at, deleted_reason)
  select md5('usage' || d.id)::uuid, company_id, id, jsonb_build_object('id', md5('usage' || d.id)::uuid), synced_at,
    deleted_at, case when deleted_at is not null then 'document' end
  from utility.documents d`;

const history = sql`
  insert into history.documents (id, company_id, created, updated, raw_updated, raw, synced_at, valid_from, valid_to)
  select id, company_id, created, updated, raw_updated, raw || '{"earlier": true}', synced_at, synced_at, now()
  from utility.documents
  where hashtext(id::text) % 4 = 0`;

/** The rows of the warehouse, in the order in which they are inserted. */
const rows = [journal, payloads, staleRecords, documentsWithHints, usage, history];
/** A part of the slowest statement of the upgrade. */
const slowest = 'hint_event_id = e.id';

/**
 * Upgrades an older release's warehouse with a million events; kills the first migration during its
 * slowest step. Returns how long the second took, and the longest time that it announced.
 */
export async function upgradeLarge(checkout: string): Promise<string> {
  const { url, drop } = await createDatabase('large');
  const warehouse = connectWarehouse({ url, timeZone: 'UTC', max: 2, onError: () => {} });
  const { db } = warehouse;
  const env = { DATABASE_URL: url };
  const rewriting = async (): Promise<number> => {
    const { rows: found } = await db.execute<{ sessions: number }>(sql`
      select count(*)::int as sessions from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and query like ${`%${slowest}%`}`);
    return found[0]?.sessions ?? 0;
  };
  try {
    expect(await runProcess(['migrate'], { env, checkout })).toMatchObject({ status: 0 });
    for (const statement of rows) await db.execute(statement);
    await db.execute(sql`vacuum analyze`);
    const before = await contentOf(warehouse);
    expect(before.find(({ name }) => name === 'metersync.events')?.rows).toBe(events);
    const killed = startCommand(['migrate'], { env });
    await until('a slow step runs', async () => (await rewriting()) > 0, { ...within, everyMs: 20 });
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

import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { withClient } from './stack.ts';

/** How long events may take until they are in the journal. After that the bench gives up. */
const receivedWithinMs = 60_000;
const lookEveryMs = 100;
/** How long it may take until no event waits, and how often that is checked. */
const settledWithinMs = 300_000;
const settledEveryMs = 250;

/**
 * Waits until the journal has this many events received since a time (Unix ms). Returns the Unix time in ms.
 * Throws an Error after a minute.
 */
export async function untilReceived(client: pg.Client, since: number, events: number): Promise<number> {
  for (const deadline = Date.now() + receivedWithinMs; ; ) {
    const { rows } = await client.query(
      'select count(*)::int as count from metersync.journal where received_at >= $1',
      [new Date(since).toISOString()],
    );
    if (rows[0].count >= events) return Date.now();
    if (Date.now() > deadline)
      throw new Error(`of ${events} events the journal has ${rows[0].count} after a minute`);
    await delay(lookEveryMs);
  }
}

/** Whether any event is pending, by an index of pending events. */
async function anyPending(db: pg.Client): Promise<boolean> {
  const { rows } = await db.query(
    "select exists (select from metersync.journal where outcome = 'pending' order by queue, due_at) as pending",
  );
  return rows[0].pending;
}

/** Waits until no event is pending, with little work for Postgres. Events that are not recorded yet do not count. */
export async function untilNonePending(db: pg.Client): Promise<void> {
  for (const deadline = Date.now() + settledWithinMs; await anyPending(db); await delay(settledEveryMs))
    if (Date.now() > deadline) throw new Error(`events are still pending after ${settledWithinMs} ms`);
}

/** Waits until every event is in the journal and none is pending. Returns the time in Unix milliseconds. */
export async function untilSettled(db: pg.Client, events: number): Promise<number> {
  for (const deadline = Date.now() + settledWithinMs; ; ) {
    while (Date.now() < deadline && (await anyPending(db))) await delay(settledEveryMs);
    const { rows } = await db.query(`
      select
        count(*)::int as all,
        count(*) filter (where outcome = 'pending')::int as pending,
        count(*) filter (where outcome in ('dead', 'ignored'))::int as lost
      from metersync.events`);
    const { all, pending, lost } = rows[0];
    if (lost > 0) throw new Error(`${lost} events are dead or ignored`);
    if (all === events && pending === 0) return Date.now();
    if (Date.now() > deadline)
      throw new Error(`not settled: ${all} of ${events} events in the journal, ${pending} pending`);
    await delay(settledEveryMs);
  }
}

/** Counts reads of records for events received since a time (ISO). Deletions are applied without a read. */
export async function countRecordsRead(db: pg.Client, since: string): Promise<number> {
  const { rows } = await db.query(
    `select count(distinct (kind, record_id, applied_at))::int as count
    from metersync.events
    where received_at >= $1
      and outcome = 'applied'
      and type <> 'document.deleted.v2'`,
    [since],
  );
  return rows[0].count;
}

/** Returns the bytes on disk, with indexes, of the tables whose name with schema begins with the prefix. */
export async function bytesOnDisk(client: pg.Client, prefix: string): Promise<number> {
  const { rows } = await client.query<{ bytes: string }>(
    `select coalesce(sum(pg_total_relation_size(c.oid)), 0) as bytes
    from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and starts_with(n.nspname || '.' || c.relname, $1)`,
    [prefix],
  );
  return Number(rows[0]?.bytes ?? 0);
}

/** Settings that turn off durability, and checkpoints during a load, and take effect by a reload. */
const settings = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  max_wal_size: '8GB',
  checkpoint_timeout: '1h',
  maintenance_work_mem: '1GB',
} as const;

/**
 * Loads rows without the indexes that are not unique, and creates these afterwards: rows at random ids slow
 * down when indexes outgrow Postgres's memory. Resets all `alter system` settings.
 * @param url of the warehouse, as superuser
 */
export async function loadWithoutIndexes(url: string, load: () => Promise<void>): Promise<void> {
  await withClient(url, async (client) => {
    for (const [name, value] of Object.entries(settings))
      await client.query(`alter system set ${name} = ${pg.escapeLiteral(value)}`);
    await client.query('select pg_reload_conf()');
    const { rows: indexes } = await client.query<{ name: string; definition: string }>(`
      select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
      from pg_index i
      join pg_class c on c.oid = i.indrelid
      where not i.indisunique
        and c.relnamespace::regnamespace::text in ('utility', 'metersync', 'ops')
        and not c.relispartition`);
    for (const { name } of indexes) await client.query(`drop index ${name}`);
    await load();
    for (const { definition } of indexes) await client.query(definition);
    await client.query('alter system reset all');
    await client.query('select pg_reload_conf()');
    await client.query('checkpoint');
  });
}

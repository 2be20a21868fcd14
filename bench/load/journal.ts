import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';

/** How long events may take to be applied before the bench gives up. */
const appliedWithinMs = 60_000;
const lookEveryMs = 100;
/** How long events may take until nothing waits, and how often that is looked at. */
const settledWithinMs = 300_000;
const settledEveryMs = 250;

/**
 * Waits until the journal holds so many events; returns when that was seen, in Unix milliseconds.
 * @throws Error when it doesn't within a minute
 */
export async function untilJournaled(client: pg.Client, events: number): Promise<number> {
  for (const deadline = Date.now() + appliedWithinMs; ; ) {
    const held = await journaled(client);
    if (held >= events) return Date.now();
    if (Date.now() > deadline) throw new Error(`of ${events} events the journal has ${held} after a minute`);
    await delay(lookEveryMs);
  }
}

/**
 * The same of events that were received since (Unix milliseconds): it counts no others, and so costs the same however
 * long the journal is.
 */
export async function untilReceived(client: pg.Client, since: number, events: number): Promise<number> {
  for (const deadline = Date.now() + appliedWithinMs; ; ) {
    const { rows } = await client.query(
      'select count(*)::int as count from metersync.events where received_at >= $1',
      [new Date(since).toISOString()],
    );
    if (rows[0].count >= events) return Date.now();
    if (Date.now() > deadline)
      throw new Error(`of ${events} events the journal has ${rows[0].count} after a minute`);
    await delay(lookEveryMs);
  }
}

export async function journaled(client: pg.Client): Promise<number> {
  const { rows } = await client.query('select count(*)::int as count from metersync.events');
  return rows[0].count;
}

/** @throws Error when an event is dead, or the record of one has no row of header columns as new as the event */
export async function proveApplied(client: pg.Client): Promise<void> {
  const { rows } = await client.query(`
    select count(*)::int as count from metersync.events e
    left join utility.documents d on e.kind = 'document' and d.id = e.record_id::uuid
    left join utility.connections c on e.kind = 'connection' and c.id = e.record_id::uuid
    where e.outcome in ('dead', 'ignored')
      or e.kind <> 'interval' and coalesce(d.updated, c.updated) is null
      or e.kind <> 'interval' and coalesce(d.updated, c.updated) < e.occurred_at`);
  if (rows[0].count > 0) throw new Error(`${rows[0].count} events are in the journal without their effect`);
}

/** Whether any record is still to be read again, which is asked for little: what events became costs Postgres far more. */
async function anyStale(db: pg.Client): Promise<boolean> {
  const { rows } = await db.query('select exists (select from metersync.stale_records) as stale');
  return rows[0].stale;
}

/** Waits until every event is in the journal and none is pending; returns when, in Unix milliseconds. */
export async function untilSettled(db: pg.Client, events: number): Promise<number> {
  for (const deadline = Date.now() + settledWithinMs; ; ) {
    while (Date.now() < deadline && (await anyStale(db))) await delay(settledEveryMs);
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

/**
 * How often records were read again for the events received since (ISO time): a record counts each time that it was
 * read, however many of its events that settled. A deletion is applied at once, without reading.
 */
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

import { sql } from 'drizzle-orm';
import pg from 'pg';
import type { Warehouse } from '../../db/connection/connect.ts';

/** The deliveries as the service itself recorded them. */
export interface Sent {
  /** Ids of the events that were sent at least once. */
  readonly sent: ReadonlySet<string>;
  /** Ids of the events with a 2xx answer, including answers to a second copy. */
  readonly acknowledged: ReadonlySet<string>;
  /** The number of requests, including repetitions, by the status of their answer, or `none`. */
  readonly answers: Readonly<Record<string, number>>;
}

/** The outcome of an event in the warehouse. */
export interface Effect {
  readonly id: string;
  readonly outcome: string;
  readonly error: string | null;
  /** How many times the event was recorded, without retries of dead or missing events: see `watchEffects`. */
  readonly times: number;
}

/** Contradictions between the service and the warehouse. All lists are empty if every promise was kept. */
export interface LedgerCheck {
  readonly acknowledgedWithoutEffect: readonly string[];
  readonly neverSent: readonly string[];
  readonly moreThanOnce: readonly string[];
  readonly deadWithoutReason: readonly string[];
}

export async function readSent(databaseUrl: string): Promise<Sent> {
  return await withBooks(databaseUrl, async (books) => {
    const { rows } = await books.query<{ id: string; acknowledged: boolean }>(`
      select e.id, coalesce(bool_or(a.status between 200 and 299), false) as acknowledged
      from sandbox.attempts a join sandbox.deliveries d on d.id = a.delivery_id
        join sandbox.events e on e.seq = d.event_seq
      group by e.id`);
    const answers = await books.query<{ status: string; n: number }>(
      `select coalesce(status::text, 'none') as status, count(*)::int as n from sandbox.attempts group by 1`,
    );
    return {
      sent: new Set(rows.map(({ id }) => id)),
      acknowledged: new Set(rows.filter((row) => row.acknowledged).map(({ id }) => id)),
      answers: Object.fromEntries(answers.rows.map(({ status, n }) => [status, n])),
    };
  });
}

/** Reads median, 99th percentile and maximum of the times until answers, in ms, of attempts since a time. */
export async function readWaits(
  databaseUrl: string,
  after: string,
): Promise<{ p50: number; p99: number; max: number }> {
  return await withBooks(databaseUrl, async (books) => {
    const { rows } = await books.query<{ p50: number; p99: number; max: number }>(
      `select percentile_disc(0.5) within group (order by duration_ms) as p50,
        percentile_disc(0.99) within group (order by duration_ms) as p99,
        max(duration_ms) as max
      from sandbox.attempts where at > $1::timestamp`,
      [after],
    );
    return rows[0] ?? { p50: 0, p99: 0, max: 0 };
  });
}

/** Reads when the service last began an attempt, according to its own clock. */
export async function lastAttempt(databaseUrl: string): Promise<string> {
  return await withBooks(databaseUrl, async (books) => {
    const { rows } = await books.query<{ at: string }>(
      `select coalesce(max(at), '-infinity')::text as at from sandbox.attempts`,
    );
    return rows[0]?.at ?? '-infinity';
  });
}

async function withBooks<T>(databaseUrl: string, read: (books: pg.Client) => Promise<T>): Promise<T> {
  const books = new pg.Client({ connectionString: databaseUrl });
  await books.connect();
  try {
    return await read(books);
  } finally {
    await books.end();
  }
}

/**
 * Notes in a separate table each time that an event is written to the journal, which has one row for each. A
 * retry of a dead or missing event is not a second effect, because the event had none before.
 */
export async function watchEffects({ db }: Pick<Warehouse, 'db'>): Promise<void> {
  await db.execute(sql`
    create schema if not exists ledger;
    create table if not exists ledger.effects (event_id text not null);
    create or replace function ledger.note_insert() returns trigger language plpgsql security definer as $$
    begin
      insert into ledger.effects values (new.id);
      return null;
    end $$;
    -- Called before the update, so that the view has the outcome until then, in an older warehouse, too.
    create or replace function ledger.note_update() returns trigger language plpgsql security definer as $$
    begin
      if new.recorded_at <> old.recorded_at
        and (select outcome not in ('dead', 'missing') from metersync.events where id = old.id)
      then
        insert into ledger.effects values (new.id);
      end if;
      return new;
    end $$;
    create trigger note_insert after insert on metersync.journal
      for each row execute function ledger.note_insert();
    create trigger note_update before update on metersync.journal
      for each row execute function ledger.note_update()`);
}

/** Ends the watch during an upgrade, because the upgrade may replace the table of the journal. */
export async function unwatchEffects({ db }: Pick<Warehouse, 'db'>): Promise<void> {
  await db.execute(sql`drop function ledger.note_insert cascade`);
  await db.execute(sql`drop function ledger.note_update cascade`);
}

/** Reads the outcome of every event. For events from before the watch, `times` is 0. */
export async function readEffects({ db }: Pick<Warehouse, 'db'>): Promise<Effect[]> {
  const { rows } = await db.execute<Effect & Record<string, unknown>>(sql`
    select id, outcome, error, coalesce(times, 0)::int as times
    from metersync.events left join (
      select event_id, count(*) as times from ledger.effects group by event_id
    ) noted on event_id = id`);
  return rows;
}

/** Lists records that went back to an older state, which is a second effect of an old event. */
export async function readUndone({ db }: Pick<Warehouse, 'db'>): Promise<string[]> {
  const states = (table: string) => sql`
    select id, updated, valid_to from history.${sql.identifier(table)}
    union all select id, updated, 'infinity' from utility.${sql.identifier(table)}`;
  const { rows } = await db.execute<{ id: string }>(sql`
    select distinct id::text from (
      select id, updated, lag(updated) over (partition by id order by valid_to) as before
      from (${states('documents')} union all ${states('connections')}) state
    ) pair where updated < before`);
  return rows.map(({ id }) => id);
}

/** Compares the service with the warehouse. Each acknowledged event must be settled, or dead for a reason. */
export function checkLedger({ sent, acknowledged }: Sent, effects: readonly Effect[]): LedgerCheck {
  const settled = new Set(
    effects
      .filter(({ outcome }) => ['applied', 'superseded', 'ignored', 'dead'].includes(outcome))
      .map(({ id }) => id),
  );
  const idsOf = (wrong: (effect: Effect) => boolean) => effects.filter(wrong).map(({ id }) => id);
  return {
    acknowledgedWithoutEffect: [...acknowledged].filter((id) => !settled.has(id)),
    neverSent: idsOf(({ id }) => !sent.has(id)),
    moreThanOnce: idsOf(({ times }) => times !== 1),
    deadWithoutReason: idsOf(({ outcome, error }) => outcome === 'dead' && !error),
  };
}

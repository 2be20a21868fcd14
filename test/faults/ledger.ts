import { sql } from 'drizzle-orm';
import pg from 'pg';
import type { Warehouse } from '../../db/connect.ts';

/** What the service knows of its deliveries, from its own books. */
export interface Sent {
  /** Ids of the events that were sent at least once. */
  readonly sent: ReadonlySet<string>;
  /** Ids of the events that a 2xx was seen for, the answer to a second copy included. */
  readonly acknowledged: ReadonlySet<string>;
  /** Requests that were made, repeated ones included, by the status that they were answered with, or `none`. */
  readonly answers: Readonly<Record<string, number>>;
}

/** What became of events, from the warehouse's books. */
export interface Effect {
  readonly id: string;
  readonly outcome: string;
  readonly error: string | null;
  /** How many times it was recorded, or settled, whichever is more: see `watchEffects`. */
  readonly times: number;
}

/** What the ledgers of both sides say of each other; all lists are empty when every promise was kept. */
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

/** How long the service waited for its answers, in ms: half of those to attempts that began after this time, 99 of 100, and all. */
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

/** When the service last began an attempt, by its own clock. */
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
 * Notes each time that an event is recorded, from now on, in a table of its own: the journal has one row for an event
 * whatever was done with it. To try again what is dead or missing is no second effect, as it had none.
 */
export async function watchEffects({ db }: Pick<Warehouse, 'db'>): Promise<void> {
  await db.execute(sql`
    create schema ledger;
    create table ledger.effects (event_id text not null);
    create function ledger.note() returns trigger language plpgsql security definer as $$
    begin
      if TG_OP = 'INSERT' or (new.recorded_at <> old.recorded_at and old.arrived_as <> 'dead' and not exists (
        select from metersync.settlements s
        where s.kind = old.kind and s.outcome in ('dead', 'missing') and s.read_at >= old.recorded_at
          and s.record_id = case old.kind when 'interval' then old.id else old.record_id end))
      then
        insert into ledger.effects values (new.id);
      end if;
      return null;
    end $$;
    create trigger note after insert or update on metersync.journal for each row execute function ledger.note()`);
}

/** What became of every event; what nobody watched has no times. */
export async function readEffects({ db }: Pick<Warehouse, 'db'>): Promise<Effect[]> {
  const { rows } = await db.execute<Effect & Record<string, unknown>>(sql`
    select id, outcome, error, coalesce(times, 0)::int as times
    from metersync.events left join (
      select event_id, count(*) as times from ledger.effects group by event_id
    ) noted on event_id = id`);
  return rows;
}

/** Records that were in a state which is older than one that they had been in before: an old event's second effect. */
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

/** An effect is an outcome that is final and no failure; what is dead has to say why. */
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

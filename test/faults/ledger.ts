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
  /** Rows of this id in the journal. */
  readonly rows: number;
}

/** What the ledgers of both sides say of each other; all lists are empty when every promise was kept. */
export interface LedgerCheck {
  readonly acknowledgedWithoutEffect: readonly string[];
  readonly neverSent: readonly string[];
  readonly moreThanOnce: readonly string[];
  readonly deadWithoutReason: readonly string[];
}

export async function readSent(databaseUrl: string): Promise<Sent> {
  const books = new pg.Client({ connectionString: databaseUrl });
  await books.connect();
  try {
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
  } finally {
    await books.end();
  }
}

export async function readEffects({ db }: Warehouse): Promise<Effect[]> {
  const { rows } = await db.execute<Effect & Record<string, unknown>>(sql`
    select id, min(outcome) as outcome, min(error) as error, count(*)::int as rows from metersync.events group by id`);
  return rows;
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
    moreThanOnce: idsOf(({ rows }) => rows !== 1),
    deadWithoutReason: idsOf(({ outcome, error }) => outcome === 'dead' && !error),
  };
}

import { and, eq, gt, like, lte, min, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import { parkingCodes } from '../../contract/failures.ts';
import type { PendingEvents } from '../../health/measured.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { isOpen } from '../events/gates.ts';
import { gates, journal } from '../schema/metersync.ts';
import { countUpTo, cut, secondsSince } from './counted.ts';

/** Number of the longest due events among which the oldest is found. Most of them have the same age. */
const dueRead = 100;

/** A limit that the planner does not see: without statistics, it would rather sort all rows. */
const unseen = (limit: number): number => sql`(select ${limit}::bigint)` as unknown as number;

/** Pending events of a kind whose record can be read, and what is not due yet. */
interface Counted {
  readonly due: number;
  readonly secondsDue: number | null;
  readonly seconds: number | null;
}

/** Counts due events and finds the oldest, using only the index. */
async function readDue(db: Executor, kind: RecordEventKind, most: number): Promise<Counted> {
  const { dueAt, recordedAt } = journal;
  const isDue = and(eq(journal.kind, kind), lte(dueAt, sql`now()`));
  const due = await countUpTo(db, journal, most, isDue, dueAt);
  const first = db
    .select({ dueAt, recordedAt })
    .from(journal)
    .where(isDue)
    .orderBy(dueAt)
    .limit(unseen(Math.min(most, dueRead)))
    .as('first');
  const [oldest] = await db
    .select({
      secondsDue: secondsSince(min(first.dueAt)),
      seconds: secondsSince(min(first.recordedAt)),
    })
    .from(first);
  return { due, secondsDue: oldest?.secondsDue ?? null, seconds: oldest?.seconds ?? null };
}

/**
 * The same while gates of owners are closed. Events behind them are not due, however many they are, so
 * each waiting owner is looked up: the first `most`, and up to `most` events of all of them.
 */
async function readDueBesideGates(
  db: Executor,
  kind: RecordEventKind,
  most: number,
): Promise<Counted> {
  const { rows } = await db.execute<Counted & Record<string, unknown>>(sql`
    with recursive waiting as (
      select ${`${kind}/`} as queue
      union all
      select (
        select e.queue
        from ${journal} e
        where e.queue > w.queue
        order by e.queue
        limit 1
      )
      from waiting w
      where w.queue like ${`${kind}/%`}
    ), due as (
      select e.due_at, e.recorded_at
      from (select queue from waiting limit ${most}) w
        cross join lateral (
          select due_at, recorded_at
          from ${journal}
          where queue = w.queue
            and due_at <= now()
          order by due_at
          limit ${most}
        ) e
      where w.queue like ${`${kind}/%`}
        and ${isOpen(sql`w.queue`)}
      limit ${most}
    )
    select
      count(*)::int as due,
      ${secondsSince(sql`min(due_at)`)} as "secondsDue",
      ${secondsSince(sql`min(recorded_at)`)} as seconds
    from due`);
  return rows[0] ?? { due: 0, secondsDue: null, seconds: null };
}

/** Counts events behind closed gates of owners: parked ones, and others. */
async function readBehindGates(db: Executor, kind: RecordEventKind, most: number) {
  const ofGate = db
    .select({ recordedAt: journal.recordedAt })
    .from(journal)
    .where(eq(journal.queue, gates.scope))
    .limit(most)
    .as('of_gate');
  const behind = db
    .select({ recordedAt: ofGate.recordedAt, parked: isParked(gates.code).as('parked') })
    .from(gates)
    .crossJoinLateral(ofGate)
    .where(like(gates.scope, `${kind}/%`))
    .limit(most)
    .as('behind');
  const [counts] = await db
    .select({
      parked: cut(sql`count(*) filter (where ${behind.parked})`, most),
      waiting: cut(sql`count(*) filter (where not ${behind.parked})`, most),
      seconds: secondsSince(min(behind.recordedAt)),
    })
    .from(behind);
  return counts ?? { parked: 0, waiting: 0, seconds: null };
}

/** Whether a failure needs somebody who acts. */
const isParked = (code: SQLWrapper): SQL<boolean> =>
  sql<boolean>`coalesce(${isAmong(code, parkingCodes)}, false)`;

/**
 * Counts pending events of a kind. Of the events that are due later at most twice `most` are read. Then either
 * both of their counts, waiting and parked, are exact, or one of them has reached `most`. Events behind a
 * closed gate count as waiting or parked.
 */
async function readKind(
  db: Executor,
  kind: RecordEventKind,
  most: number,
  closed: boolean,
): Promise<PendingEvents> {
  const { dueAt, recordedAt, errorCode, queue } = journal;
  const due = closed ? await readDueBesideGates(db, kind, most) : await readDue(db, kind, most);
  const behind = closed
    ? await readBehindGates(db, kind, most)
    : { parked: 0, waiting: 0, seconds: null };
  const next = db
    .select({ queue, recordedAt, parked: isParked(errorCode).as('parked') })
    .from(journal)
    .where(and(eq(journal.kind, kind), gt(dueAt, sql`now()`)))
    .orderBy(dueAt)
    .limit(unseen(2 * most))
    .as('next');
  const countOf = (which: SQL) => cut(sql`count(*) filter (where ${which})`, most);
  const [later] = await db
    .select({
      waiting: countOf(sql`not ${next.parked}`),
      parked: countOf(sql`${next.parked}`),
      seconds: secondsSince(min(next.recordedAt)),
    })
    .from(next)
    .where(closed ? isOpen(next.queue) : undefined);
  const ages = [due.seconds, later?.seconds ?? null, behind.seconds].filter((age) => age !== null);
  return {
    due: due.due,
    waiting: Math.min((later?.waiting ?? 0) + behind.waiting, most),
    parked: Math.min((later?.parked ?? 0) + behind.parked, most),
    oldestDueSeconds: due.secondsDue,
    oldestSeconds: ages.length === 0 ? null : Math.max(...ages),
  };
}

/** Counts pending events by kind. */
export async function readPending(
  db: Executor,
  most: number,
): Promise<Readonly<Record<RecordEventKind, PendingEvents>>> {
  const pending: Partial<Record<RecordEventKind, PendingEvents>> = {};
  const closed = await db
    .selectDistinct({ kind: sql<string>`split_part(${gates.scope}, '/', 1)` })
    .from(gates);
  for (const kind of recordEventKinds)
    pending[kind] = await readKind(
      db,
      kind,
      most,
      closed.some((gate) => gate.kind === kind),
    );
  return pending as Record<RecordEventKind, PendingEvents>;
}

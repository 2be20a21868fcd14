import { and, eq, gt, lte, min, type SQL, sql } from 'drizzle-orm';
import { type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import { parkingCodes } from '../../contract/failures.ts';
import type { PendingEvents } from '../../health/measured.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { staleRecords } from '../schema/metersync.ts';
import { countUpTo, cut, secondsSince } from './counted.ts';

/** Number of due records that are read if there are too many to count all of their events. */
const dueRead = 1_000;

/** A limit that the planner does not see: without statistics, it would rather sort all rows. */
const unseen = (limit: number): number => sql`(select ${limit}::bigint)` as unknown as number;

/**
 * Counts pending events of a kind. Due records are counted first, using only the index: if there
 * are `most` of them, they have at least `most` events. Of the records that are due later at most
 * twice `most` are read. Then either both of their counts, waiting and parked, are exact, or one of
 * them has reached `most`.
 */
async function readKind(db: Executor, kind: RecordEventKind, most: number): Promise<PendingEvents> {
  const { dueAt, since, events, errorCode } = staleRecords;
  const now = sql`now()`;
  const ofKind = eq(staleRecords.kind, kind);
  const isDue = and(ofKind, lte(dueAt, now));
  const records = await countUpTo(db, staleRecords, most, isDue, dueAt);
  const firstOf = (which: SQL | undefined, limit: number) =>
    db
      .select({
        events,
        dueAt,
        since,
        parked: sql<boolean>`coalesce(${isAmong(errorCode, parkingCodes)}, false)`.as('parked'),
      })
      .from(staleRecords)
      .where(which)
      .orderBy(dueAt)
      .limit(unseen(limit))
      .as('first');
  const first = firstOf(isDue, records < most ? most : dueRead);
  const [due] = await db
    .select({
      events: cut(sql`coalesce(sum(${first.events}), 0)`, most),
      secondsDue: secondsSince(min(first.dueAt)),
      seconds: secondsSince(min(first.since)),
    })
    .from(first);
  const next = firstOf(and(ofKind, gt(dueAt, now)), 2 * most);
  const sumOf = (which: SQL) =>
    cut(sql`coalesce(sum(${next.events}) filter (where ${which}), 0)`, most);
  const [later] = await db
    .select({
      waiting: sumOf(sql`not ${next.parked}`),
      parked: sumOf(sql`${next.parked}`),
      seconds: secondsSince(min(next.since)),
    })
    .from(next);
  const ages = [due?.seconds ?? null, later?.seconds ?? null].filter((age) => age !== null);
  return {
    due: Math.max(records, due?.events ?? 0),
    waiting: later?.waiting ?? 0,
    parked: later?.parked ?? 0,
    oldestDueSeconds: due?.secondsDue ?? null,
    oldestSeconds: ages.length === 0 ? null : Math.max(...ages),
  };
}

/** Counts pending events by kind. */
export async function readPending(
  db: Executor,
  most: number,
): Promise<Readonly<Record<RecordEventKind, PendingEvents>>> {
  const pending: Partial<Record<RecordEventKind, PendingEvents>> = {};
  for (const kind of recordEventKinds) pending[kind] = await readKind(db, kind, most);
  return pending as Record<RecordEventKind, PendingEvents>;
}

import { and, eq, gt, lte, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import { parkingCodes } from '../../contract/failures.ts';
import type { PendingEvents } from '../../health/measured.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { staleRecords } from '../schema/metersync.ts';
import { countUpTo, cut } from './counted.ts';

/** Due records that are read where there are too many to count their events. */
const dueRead = 1_000;

/** A limit that the planner does not see: without statistics it would expect fewer rows, and sort all. */
const unseen = (limit: number): number => sql`(select ${limit}::bigint)` as unknown as number;

/**
 * Counts pending events of a kind. Due records are counted first, using only the index: as many records as the
 * limit have at least as many events. Of the other records only so many are read that either their two states
 * are exact, or one of them is above the limit.
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
      secondsDue: ageOf(first.dueAt),
      seconds: ageOf(first.since),
    })
    .from(first);
  const next = firstOf(and(ofKind, gt(dueAt, now)), 2 * most);
  const sumOf = (which: SQL) =>
    cut(sql`coalesce(sum(${next.events}) filter (where ${which}), 0)`, most);
  const [later] = await db
    .select({
      waiting: sumOf(sql`not ${next.parked}`),
      parked: sumOf(sql`${next.parked}`),
      seconds: ageOf(next.since),
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

/** Seconds since the first of some times; null without one. */
const ageOf = (times: SQLWrapper) =>
  sql<number | null>`extract(epoch from clock_timestamp() - min(${times}))::float8`;

/** Counts pending events by kind. */
export async function readPending(
  db: Executor,
  most: number,
): Promise<Readonly<Record<RecordEventKind, PendingEvents>>> {
  const pending: Partial<Record<RecordEventKind, PendingEvents>> = {};
  for (const kind of recordEventKinds) pending[kind] = await readKind(db, kind, most);
  return pending as Record<RecordEventKind, PendingEvents>;
}

import { and, eq, gt, lte, min, type SQL, sql } from 'drizzle-orm';
import { type RecordEventKind, recordEventKinds } from '../../contract/event.ts';
import { parkingCodes } from '../../contract/failures.ts';
import type { PendingEvents } from '../../health/measured.ts';
import { isAmong } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { countUpTo, cut, secondsSince } from './counted.ts';

/** Number of the longest due events among which the oldest is found. Most of them have the same age. */
const dueRead = 100;

/** A limit that the planner does not see: without statistics, it would rather sort all rows. */
const unseen = (limit: number): number => sql`(select ${limit}::bigint)` as unknown as number;

/**
 * Counts pending events of a kind. Due events are counted first, using only the index. Of the events
 * that are due later at most twice `most` are read. Then either both of their counts, waiting and
 * parked, are exact, or one of them has reached `most`.
 */
async function readKind(db: Executor, kind: RecordEventKind, most: number): Promise<PendingEvents> {
  const { dueAt, recordedAt, errorCode } = journal;
  const now = sql`now()`;
  const ofKind = eq(journal.kind, kind);
  const isDue = and(ofKind, lte(dueAt, now));
  const count = await countUpTo(db, journal, most, isDue, dueAt);
  const firstOf = (which: SQL | undefined, limit: number) =>
    db
      .select({
        dueAt,
        recordedAt,
        parked: sql<boolean>`coalesce(${isAmong(errorCode, parkingCodes)}, false)`.as('parked'),
      })
      .from(journal)
      .where(which)
      .orderBy(dueAt)
      .limit(unseen(limit))
      .as('first');
  const first = firstOf(isDue, Math.min(most, dueRead));
  const [due] = await db
    .select({
      secondsDue: secondsSince(min(first.dueAt)),
      seconds: secondsSince(min(first.recordedAt)),
    })
    .from(first);
  const next = firstOf(and(ofKind, gt(dueAt, now)), 2 * most);
  const countOf = (which: SQL) => cut(sql`count(*) filter (where ${which})`, most);
  const [later] = await db
    .select({
      waiting: countOf(sql`not ${next.parked}`),
      parked: countOf(sql`${next.parked}`),
      seconds: secondsSince(min(next.recordedAt)),
    })
    .from(next);
  const ages = [due?.seconds ?? null, later?.seconds ?? null].filter((age) => age !== null);
  return {
    due: count,
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

import { and, eq, isNull, sql } from 'drizzle-orm';
import { recordEventKinds } from '../../contract/event.ts';
import { batches } from '../../contract/limits.ts';
import type { CatchUpKind, Queue } from '../../contract/names.ts';
import { array, literal, oneRow } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { eventKind } from '../events/queue.ts';
import { ownersDue } from '../hot/owners-due.ts';
import { journal, parked } from '../schema/metersync.ts';
import { usageData } from '../schema/utility.ts';

/**
 * Returns at most `limit` owners of due events, longest due first, so that retries of one owner do
 * not delay the others; none while the service is parked. `among` restricts the search.
 */
export async function dueOwners(
  db: Executor,
  kind: CatchUpKind,
  limit: number,
  among?: readonly string[],
): Promise<string[]> {
  if (among !== undefined) return (await ownersDue(db, kind, among, limit)).owners;
  const longest = await ownersDue(db, kind, 'longest', limit);
  if (longest.owners.length >= limit || longest.events < batches.dueEvents) return longest.owners;
  // A few owners have many due events: look up each waiting owner once.
  return (await ownersDue(db, kind, 'each', limit)).owners;
}

/** Returns the time until the next event of another queue is due; 0 if it is now, null if none is pending. */
export async function nextDueInMs(
  db: Executor,
  except: readonly Queue[] = [],
): Promise<number | null> {
  const queues = except.map(({ kind, owner }) => `${eventKind[kind]}/${owner}`);
  const { rows } = await db.execute<{ inMs: number | null }>(sql`
    select
      case
        when first.due_at is not null
        then greatest(
          extract(epoch from greatest(first.due_at, service.open_at) - clock_timestamp()) * 1000,
          0
        )::float8
      end as "inMs"
    from (
        select min(due.due_at) as due_at
        from unnest(${array(recordEventKinds, 'text')}) as kinds (kind)
          cross join lateral (
            select due_at
            from ${journal}
            where kind = kinds.kind
              and due_at is not null
              and queue <> all(${array(queues, 'text')})
            order by kind, due_at
            limit 1
          ) due
      ) first
      cross join (select max(next_attempt_at) as open_at from ${parked}) service`);
  const inMs = rows[0]?.inMs ?? null;
  return inMs === null ? null : Math.ceil(inMs);
}

/** Whether any of these events is pending. */
export async function anyPending(db: Executor, eventIds: readonly string[]): Promise<boolean> {
  const { rows } = await db.execute(sql`
    select
    from unnest(${array(eventIds, 'text')}) as asked (id)
      cross join lateral (
        select outcome
        from ${journal}
        where id = asked.id
        offset 0
      ) e
    where e.outcome = 'pending'
    limit 1`);
  return rows.length > 0;
}

/** Returns the warehouse's clock, which orders the reads of all workers. */
export async function warehouseNow(db: Executor): Promise<string> {
  const [clock] = await db.select({ now: sql<string>`clock_timestamp()::text` }).from(oneRow);
  return clock?.now ?? '';
}

/** Reads the ids of live usage rows, by the id of their document. */
export async function liveUsage(
  db: Executor,
  documentIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const theirs = db
    .select({ id: usageData.id })
    .from(usageData)
    .where(and(eq(usageData.documentId, sql`asked.id`), isNull(usageData.deletedAt)))
    .offset(literal(0))
    .as('theirs');
  const live = await db
    .select({ id: sql<string>`asked.id`, ids: sql<string[]>`array_agg(${theirs.id}::text)` })
    .from(sql`unnest(${array([...new Set(documentIds)], 'uuid')}) as asked (id)`)
    .crossJoinLateral(theirs)
    .groupBy(sql`asked.id`);
  return new Map(live.map(({ id, ids }) => [id, ids]));
}

import { and, eq, isNull, not, sql } from 'drizzle-orm';
import { recordEventKinds } from '../../contract/event.ts';
import { batches } from '../../contract/limits.ts';
import type { CatchUpKind } from '../../contract/names.ts';
import { array, literal, oneRow } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { ownersDue } from '../hot/owners-due.ts';
import { gates, journal } from '../schema/metersync.ts';
import { usageData } from '../schema/utility.ts';
import { isShared, serviceScope } from './gates.ts';

/**
 * Returns at most `limit` owners of events that were due at `asOf`, longest due first, so that retries of one
 * owner do not delay the others. Leaves out owners behind a closed gate. `among` restricts the search.
 */
export async function dueOwners(
  db: Executor,
  kind: CatchUpKind,
  limit: number,
  { asOf, among }: { readonly asOf?: string; readonly among?: readonly string[] } = {},
): Promise<string[]> {
  const most = { limit, asOf: asOf ?? (await warehouseNow(db)) };
  if (among !== undefined) return (await ownersDue(db, kind, among, most)).owners;
  const longest = await ownersDue(db, kind, 'longest', most);
  if (longest.owners.length >= limit || longest.events < batches.dueEvents) return longest.owners;
  // A few owners have many due events: look up each waiting owner once.
  return (await ownersDue(db, kind, 'each', most)).owners;
}

/** What the sweep waits for if nothing that it could read is due. */
export interface NextDue {
  /** Time until an event becomes due, or a gate may be probed; null if nothing waits. */
  readonly dueInMs: number | null;
  /** Scopes of shared gates that have to be probed now. */
  readonly probes: readonly string[];
}

/**
 * Returns what becomes due after `asOf`. Also removes gates that it is time to probe although no event is
 * behind them: nothing would show that they can be opened.
 */
export async function nextDue(db: Executor, asOf: string): Promise<NextDue> {
  const { rows } = await db.execute<NextDue & Record<string, unknown>>(sql`
    with idle as (
      delete from ${gates} g
      where not ${isShared}
        and g.next_probe_at <= ${asOf}::timestamptz
        and ${not(isWaiting)}
    ), service as (
      select next_probe_at
      from ${gates}
      where scope = ${serviceScope}
    ), event as (
      select min(due.due_at) as due_at
      from unnest(${array(recordEventKinds, 'text')}) as kinds (kind)
        cross join lateral (
          select due_at
          from ${journal}
          where kind = kinds.kind
            and due_at > ${asOf}::timestamptz
          order by kind, due_at
          limit 1
        ) due
    ), probe as (
      select min(next_probe_at) as due_at
      from ${gates}
      where next_probe_at > ${asOf}::timestamptz
    )
    select
      case
        when next.due_at is not null
        then ceil(greatest(extract(epoch from next.due_at - clock_timestamp()) * 1000, 0))::float8
      end as "dueInMs",
      array(
        select scope
        from ${gates}
        where ${isShared}
          and next_probe_at <= ${asOf}::timestamptz
        order by scope
      ) as probes
    from event
      cross join probe
      cross join lateral (
        select coalesce(
            (select next_probe_at from service),
            least(event.due_at, probe.due_at)
          ) as due_at
      ) next`);
  return rows[0] ?? { dueInMs: null, probes: [] };
}

const isWaiting = sql`exists (
          select
          from ${journal}
          where queue = g.scope
          offset 0
        )`;

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

import { and, desc, eq, gt, isNotNull, isNull, max, min, type SQL, sql } from 'drizzle-orm';
import { companyResources } from '../../contract/endpoints.ts';
import { array, literal, unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { dataIssues } from '../schema/ops.ts';
import { runs } from '../schema/reads.ts';
import { companies, connectionStatusChanges, connections, meters } from '../schema/utility.ts';
import {
  connectionsNeedingAttention as needingAttention,
  unwellConnections,
} from '../schema/views.ts';
import { consoleBounds } from './bounds.ts';

/** The state of a company. */
export type ListedCompany = Awaited<ReturnType<typeof read>>[number];

/** The last company of a page. */
export interface CompanyCursor {
  readonly name: string;
  readonly id: string;
}

/** Lists live companies by name. */
export async function listCompanies(
  db: Executor,
  page: { readonly limit: number; readonly after?: CompanyCursor | undefined },
): Promise<ListedCompany[]> {
  const { limit, after } = page;
  const later =
    after &&
    sql`(coalesce(${companies.name}, ''), ${companies.id}) > (${after.name}, ${after.id}::uuid)`;
  return await read(db, and(isNull(companies.deletedAt), later), limit);
}

/** Reads one company, live or deleted. */
export const readCompany = async (db: Executor, id: string): Promise<ListedCompany | undefined> =>
  (await read(db, eq(companies.id, id), 1))[0];

async function read(db: Executor, which: SQL | undefined, limit: number) {
  const { id, name, externalId, deletedAt } = companies;
  const page = db
    .select({ id, name, externalId, deletedAt })
    .from(companies)
    .where(which)
    .orderBy(sql`coalesce(${name}, '')`, id)
    .limit(limit)
    .as('page');
  const waits = db
    .select({
      events: sql<number>`count(*)::int`.as('waiting'),
      since: min(journal.recordedAt).as('waiting_since'),
    })
    .from(journal)
    .where(sql`${journal.queue} in ('document/' || ${page.id}, 'connection/' || ${page.id})`)
    .as('waits');
  const last = db
    .select({ state: runs.state, finishedAt: runs.finishedAt })
    .from(runs)
    .where(
      and(
        eq(runs.companyId, page.id),
        eq(runs.resource, sql`listing.resource`),
        isNotNull(runs.finishedAt),
      ),
    )
    .orderBy(desc(runs.finishedAt))
    .limit(1)
    .as('last');
  const reads = db
    .select({
      unwell: sql<number>`count(*) filter (where ${last.state} <> 'complete')::int`.as('unwell'),
      until: sql<string | null>`case
        when count(${last.finishedAt}) = count(*) then min(${last.finishedAt})
      end`.as('read_until'),
    })
    .from(sql`unnest(${array(companyResources, 'text')}) as listing (resource)`)
    .leftJoinLateral(last, sql`true`)
    .as('reads');
  const ofCompany = and(eq(connections.companyId, page.id), isNull(connections.deletedAt));
  const mustAct = sql`metersync.customer_must_act(${connections.status})`;
  return await db
    .select({
      id: page.id,
      name: page.name,
      externalId: page.externalId,
      deletedAt: page.deletedAt,
      /** Events whose document or connection waits to be read, and since when the first waits. */
      waiting: waits.events,
      waitingSince: waits.since,
      /** Number of resources whose last read did not end as complete. */
      unwell: reads.unwell,
      /** The end of the oldest last read of its resources; null if one was never read. */
      readUntil: reads.until,
      /** Open issues of its data that nobody acknowledged. */
      issues: db.$count(
        dataIssues,
        and(
          eq(dataIssues.companyId, page.id),
          // Not closed_at: for it, Postgres might read the index of all open issues.
          isNull(dataIssues.closedReason),
          isNull(dataIssues.acknowledgedAt),
        ),
      ),
      /** Connections that need a person. */
      connections: db.$count(connections, and(ofCompany, mustAct)),
      /** Connections that collect nothing for now, although no person has to act. */
      idleConnections: db.$count(
        connections,
        and(
          ofCompany,
          sql`metersync.needs_attention(${connections.status})`,
          sql`${mustAct} is not true`,
        ),
      ),
    })
    .from(page)
    .crossJoinLateral(waits)
    .crossJoinLateral(reads)
    .orderBy(sql`coalesce(${page.name}, '')`, page.id);
}

/** Reads how each of a company's resources was last read, in the order of a backfill. */
export async function readResources(db: Executor, companyId: string) {
  const last = db
    .select()
    .from(runs)
    .where(and(eq(runs.companyId, companyId), eq(runs.resource, sql`listing.resource`)))
    .orderBy(desc(runs.finishedAt))
    .limit(1)
    .as('last');
  return await db
    .select({
      resource: sql<string>`listing.resource`,
      runId: last.runId,
      state: last.state,
      startedAt: last.startedAt,
      finishedAt: last.finishedAt,
      /** How many records its listing had. */
      records: last.distinctIds,
      drift: last.drift,
      /** Changes without an event. */
      missed: last.rowsMissed,
      error: last.error,
    })
    .from(
      sql`unnest(${array(companyResources, 'text')}) with ordinality as listing (resource, place)`,
    )
    .crossJoinLateral(last)
    .orderBy(sql`listing.place`);
}

/** Counts the ranges of readings of a company that wait to be read. */
export async function rangesWaiting(db: Executor, companyId: string): Promise<number> {
  const waits = db
    .select({ ranges: sql<number>`count(*)`.as('ranges') })
    .from(journal)
    .where(eq(journal.queue, sql`'interval/' || ${meters.id}`))
    .offset(literal(0))
    .as('waits');
  const [found] = await db
    .select({ waiting: sql<number>`coalesce(sum(${waits.ranges}), 0)::int` })
    .from(meters)
    .crossJoinLateral(waits)
    .where(eq(meters.companyId, companyId));
  return found?.waiting ?? 0;
}

/** Lists a company's live connections, starting with those that need a person. */
export async function listConnections(db: Executor, companyId: string) {
  const { id, datasource: provider, status } = connections;
  const own = db
    .select({
      id,
      provider,
      status,
      firstSeenAt: sql`metersync.time_of(raw ->> 'statusFirstSeenTime')`.as('first_seen_at'),
    })
    .from(connections)
    .where(and(eq(connections.companyId, companyId), isNull(connections.deletedAt)))
    .limit(literal(200))
    .as('own');
  const { at, connectionId } = connectionStatusChanges;
  const began = db
    .select({
      since: sql<string | null>`greatest(${max(at)}, ${own.firstSeenAt})`.as('since'),
    })
    .from(connectionStatusChanges)
    .where(and(eq(connectionId, own.id), eq(connectionStatusChanges.status, own.status)))
    .as('began');
  return await db
    .select({
      id: own.id,
      provider: own.provider,
      status: own.status,
      statusClass: sql<string | null>`analytics.status_class(${own.status})`,
      since: began.since,
      /** What a person has to do about it. */
      whatToDo: sql<string | null>`case
        when metersync.needs_attention(${own.status})
          then analytics.what_to_do(${own.status}, ${began.since})
      end`,
    })
    .from(own)
    .crossJoinLateral(began)
    .orderBy(sql`metersync.customer_must_act(${own.status}) is not true`, own.provider, own.id);
}

/** Lists statuses that need attention. Look-ups in an index avoid reading all connections. */
async function unwellStatuses(db: Executor) {
  const { status } = connections;
  const statuses: { status: string; needs: boolean; customer: boolean }[] = [];
  for (;;) {
    const last = statuses.at(-1);
    const [next] = await db
      .select({
        status: sql<string>`${status}`,
        needs: sql<boolean>`metersync.needs_attention(${status})`,
        customer: sql<boolean>`metersync.customer_must_act(${status})`,
      })
      .from(connections)
      .where(and(isNull(connections.deletedAt), gt(status, last?.status ?? '')))
      .orderBy(status)
      .limit(1);
    if (next === undefined) return statuses.filter(({ needs }) => needs);
    statuses.push(next);
  }
}

/**
 * Lists connections that need attention, by whether a customer must act and by age of status. How
 * far bills reach is worked out only for listed connections. `looked` is the number of connections
 * that it examined.
 */
export async function connectionsNeedingAttention(
  db: Executor,
  { limit }: { readonly limit: number },
) {
  const among = consoleBounds.connectionsMax;
  const unwell = unnested('unwell', await unwellStatuses(db), [
    ['status', 'text', ({ status }) => status],
    ['customer', 'boolean', ({ customer }) => customer],
  ]);
  const few = db
    .select({ id: connections.id })
    .from(connections)
    .where(and(isNull(connections.deletedAt), eq(connections.status, sql`unwell.status`)))
    .orderBy(connections.id)
    .limit(literal(among))
    .as('few');
  const candidate = db
    .$with('candidate')
    .as(
      db
        .select({ id: few.id })
        .from(unwell)
        .crossJoinLateral(few)
        .orderBy(sql`unwell.customer desc`)
        .limit(literal(among)),
    );
  const { connectionId, customerMustAct, since } = unwellConnections;
  const itsState = db
    .select({ customerMustAct, since })
    .from(unwellConnections)
    .where(eq(connectionId, candidate.id))
    .offset(literal(0))
    .as('its_state');
  const first = db
    .select({ id: candidate.id })
    .from(candidate)
    .crossJoinLateral(itsState)
    .orderBy(desc(itsState.customerMustAct), sql`${itsState.since} nulls last`, candidate.id)
    .limit(limit)
    .as('first');
  const needing = db
    .select()
    .from(needingAttention)
    .where(eq(needingAttention.connectionId, first.id))
    .offset(literal(0))
    .as('needing');
  const rows = await db
    .with(candidate)
    .select({
      looked: sql<number>`(select count(*)::int from ${candidate})`,
      connection: {
        connectionId: needing.connectionId,
        companyId: needing.companyId,
        provider: needing.provider,
        company: needing.company,
        status: needing.status,
        since: needing.since,
        whatToDo: needing.whatToDo,
        customerMustAct: needing.customerMustAct,
        dataUntil: needing.dataUntil,
        isLate: needing.isLate,
      },
    })
    .from(first)
    .crossJoinLateral(needing)
    .orderBy(desc(needing.customerMustAct), sql`${needing.since} nulls last`, needing.connectionId);
  return { connections: rows.map((row) => row.connection), looked: rows[0]?.looked ?? 0 };
}

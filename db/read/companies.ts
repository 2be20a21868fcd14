import { type SQL, sql } from 'drizzle-orm';
import { companyResources } from '../../contract/endpoints.ts';
import type { RunState } from '../../contract/names.ts';
import { array, isBeyond } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { journal } from '../schema/metersync.ts';
import { dataIssues } from '../schema/ops.ts';
import { runs } from '../schema/reads.ts';
import { companies, connectionStatusChanges, connections, meters } from '../schema/utility.ts';
import { consoleBounds } from './bounds.ts';

/** The state of a company. */
export type ListedCompany = {
  readonly id: string;
  readonly name: string | null;
  readonly externalId: string | null;
  readonly deletedAt: string | null;
  /** Events whose document or connection waits to be read, and since when the first waits. */
  readonly waiting: number;
  readonly waitingSince: string | null;
  /** Number of resources whose last read did not end as complete. */
  readonly unwell: number;
  /** The end of the oldest last read of its resources; null if one was never read. */
  readonly readUntil: string | null;
  /** Open issues of its data that nobody acknowledged. */
  readonly issues: number;
  /** Connections that need a person. */
  readonly connections: number;
  /** Connections that collect nothing for now, although no person has to act. */
  readonly idleConnections: number;
};

/** The last company of a page. */
interface LastCompany {
  readonly name: string;
  readonly id: string;
}

/** Lists live companies by name. */
export async function listCompanies(
  db: Executor,
  page: { readonly limit: number; readonly after?: LastCompany | undefined },
): Promise<ListedCompany[]> {
  const { limit, after } = page;
  const order = [sql`coalesce(name, '')`, sql`id`];
  const isLater = isBeyond(order, 'ascending', after && [after.name, after.id]) ?? sql`true`;
  return await readCompanies(db, sql`deleted_at is null and ${isLater}`, limit);
}

/** Reads one company, live or deleted. */
export async function readCompany(db: Executor, id: string): Promise<ListedCompany | undefined> {
  return (await readCompanies(db, sql`id = ${id}::uuid`, 1))[0];
}

async function readCompanies(db: Executor, which: SQL, limit: number): Promise<ListedCompany[]> {
  const { rows } = await db.execute<ListedCompany>(sql`
    select
      page.id, page.name,
      page.external_id as "externalId",
      page.deleted_at as "deletedAt",
      waits.waiting,
      waits.since as "waitingSince",
      reads.unwell,
      reads.until as "readUntil",
      (
        -- Not closed_at: for it, Postgres might read the index of all open issues.
        select count(*)::int
        from ${dataIssues}
        where company_id = page.id and closed_reason is null and acknowledged_at is null
      ) as issues,
      statuses.needing as connections,
      statuses.idle as "idleConnections"
    from (
      select *
      from ${companies}
      where ${which}
      order by coalesce(name, ''), id
      limit ${limit}
    ) page
      cross join lateral (
        select count(*)::int as waiting, min(recorded_at) as since
        from ${journal}
        where queue in ('document/' || page.id, 'connection/' || page.id)
      ) waits
      cross join lateral (
        select
          (count(*) filter (where last.state <> 'complete'))::int as unwell,
          case when count(last.finished_at) = count(*) then min(last.finished_at) end as until
        from unnest(${array(companyResources, 'text')}) as listing (resource)
          left join lateral (
            select state, finished_at
            from ${runs}
            where company_id = page.id
              and resource = listing.resource
              and finished_at is not null
            order by finished_at desc
            limit 1
          ) last on true
      ) reads
      cross join lateral (
        select
          (count(*) filter (where metersync.customer_must_act(status)))::int as needing,
          (count(*) filter (
            where metersync.needs_attention(status)
              and metersync.customer_must_act(status) is not true
          ))::int as idle
        from ${connections}
        where company_id = page.id and deleted_at is null
      ) statuses
    order by coalesce(page.name, ''), page.id`);
  return rows;
}

/** How a resource of a company was last read. */
type LastRead = {
  readonly resource: string;
  readonly runId: string;
  readonly state: RunState;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  /** How many records its listing had. */
  readonly records: number | null;
  readonly drift: number;
  /** Changes without an event. */
  readonly missed: number;
  readonly error: string | null;
};

/** Reads how each of a company's resources was last read, in the order of a backfill. */
export async function readResources(db: Executor, companyId: string): Promise<LastRead[]> {
  const { rows } = await db.execute<LastRead>(sql`
    select
      listing.resource, last.state, last.drift, last.error,
      last.run_id as "runId",
      last.started_at as "startedAt",
      last.finished_at as "finishedAt",
      last.distinct_ids::float8 as records,
      last.rows_missed::float8 as missed
    from unnest(${array(companyResources, 'text')}) with ordinality as listing (resource, place)
      cross join lateral (
        select *
        from ${runs}
        where company_id = ${companyId}::uuid and resource = listing.resource
        order by finished_at desc
        limit 1
      ) last
    order by listing.place`);
  return rows;
}

/** Counts the ranges of readings of a company that wait to be read. */
export async function rangesWaiting(db: Executor, companyId: string): Promise<number> {
  const { rows } = await db.execute<{ waiting: number }>(sql`
    select coalesce(sum(waits.ranges), 0)::int as waiting
    from ${meters} m
      cross join lateral (
        select count(*) as ranges from ${journal} where queue = 'interval/' || m.id
      ) waits
    where m.company_id = ${companyId}::uuid`);
  return rows[0]?.waiting ?? 0;
}

type ListedConnection = {
  readonly id: string;
  readonly provider: string | null;
  readonly status: string | null;
  readonly statusClass: string | null;
  readonly since: string | null;
  /** What a person has to do about it. */
  readonly whatToDo: string | null;
};

/** Lists a company's live connections, starting with those that need a person. */
export async function listConnections(
  db: Executor,
  companyId: string,
): Promise<ListedConnection[]> {
  const { rows } = await db.execute<ListedConnection>(sql`
    select
      own.id, own.provider, own.status, began.since,
      analytics.status_class(own.status) as "statusClass",
      case
        when metersync.needs_attention(own.status)
          then analytics.what_to_do(own.status, began.since)
      end as "whatToDo"
    from (
      select
        id, status,
        datasource as provider,
        metersync.time_of(raw ->> 'statusFirstSeenTime') as first_seen_at
      from ${connections}
      where company_id = ${companyId}::uuid and deleted_at is null
      limit ${connectionsOfCompany}
    ) own
      cross join lateral (
        select greatest(max(at), own.first_seen_at) as since
        from ${connectionStatusChanges}
        where connection_id = own.id and status = own.status
      ) began
    order by metersync.customer_must_act(own.status) is not true, own.provider, own.id`);
  return rows;
}

const connectionsOfCompany = 200;

type NeedingConnection = {
  readonly connectionId: string;
  readonly companyId: string;
  readonly provider: string | null;
  readonly company: string | null;
  readonly status: string;
  readonly since: string | null;
  readonly whatToDo: string;
  readonly customerMustAct: boolean;
  readonly dataUntil: string | null;
  readonly isLate: boolean;
};

/**
 * Lists connections that need attention, by whether a customer must act and by age of status. How
 * far bills reach is worked out only for listed connections. `looked` is the number of connections
 * that it examined.
 */
export async function connectionsNeedingAttention(
  db: Executor,
  { limit }: { readonly limit: number },
): Promise<{ connections: NeedingConnection[]; looked: number }> {
  const { rows } = await db.execute<NeedingConnection & { looked: number }>(sql`
    with recursive status_known as (
      (select status from ${connections} where deleted_at is null order by status limit 1)
      union all
      select (
        select c.status
        from ${connections} c
        where c.deleted_at is null and c.status > s.status
        order by c.status
        limit 1
      )
      from status_known s
      where s.status is not null
    ), candidate as materialized (
      select few.id
      from status_known s
        cross join lateral (
          select id
          from ${connections}
          where deleted_at is null and status = s.status
          order by id
          limit ${consoleBounds.connectionsMax}
        ) few
      where metersync.needs_attention(s.status)
      order by metersync.customer_must_act(s.status) desc
      limit ${consoleBounds.connectionsMax}
    ), longest as materialized (
      -- Without the offset the view is computed for all connections.
      select c.id
      from candidate c
        cross join lateral (
          select customer_must_act, since
          from metersync.unwell_connections
          where connection_id = c.id
          offset 0
        ) its_state
      order by its_state.customer_must_act desc, its_state.since nulls last, c.id
      limit ${limit}
    )
    select
      (select count(*)::int from candidate) as looked,
      needing.connection_id as "connectionId",
      needing.company_id as "companyId",
      needing.provider, needing.company, needing.status, needing.since,
      needing.what_to_do as "whatToDo",
      needing.customer_must_act as "customerMustAct",
      needing.data_until as "dataUntil",
      needing.is_late as "isLate"
    from longest
      cross join lateral (
        select *
        from analytics.connections_needing_attention
        where connection_id = longest.id
        offset 0
      ) needing
    order by
      needing.customer_must_act desc, needing.since nulls last, needing.provider,
      needing.connection_id`);
  const looked = rows[0]?.looked ?? 0;
  return { connections: rows.map(({ looked: _, ...connection }) => connection), looked };
}

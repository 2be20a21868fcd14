import { type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { companyResources } from '../../contract/endpoints.ts';
import { array } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { runs, staleRecords } from '../schema/metersync.ts';
import { dataIssues } from '../schema/ops.ts';
import { companies, connectionStatusChanges, connections, meters } from '../schema/utility.ts';

/** The state of a company. */
export interface ListedCompany {
  readonly id: string;
  readonly name: string | null;
  readonly externalId: string | null;
  readonly deletedAt: string | null;
  /** Events whose document or connection waits to be read, and since when the first of them waits. */
  readonly waiting: number;
  readonly waitingSince: string | null;
  /** Resources whose last read did not end complete. */
  readonly unwell: number;
  /** When all its resources were last read; null if one never was. */
  readonly readUntil: string | null;
  /** Open issues of its data that nobody acknowledged. */
  readonly issues: number;
  /** Connections that need a person. */
  readonly connections: number;
}

/** The last company of a page. */
export interface CompanyCursor {
  readonly name: string;
  readonly id: string;
}

const part = alias(runs, 'part');
const stale = alias(staleRecords, 'stale');

/** Lists live companies by name. */
export async function listCompanies(
  db: Executor,
  page: { readonly limit: number; readonly after?: CompanyCursor | undefined },
): Promise<ListedCompany[]> {
  const { limit, after } = page;
  const later =
    after === undefined
      ? sql`true`
      : sql`(coalesce(${companies.name}, ''), ${companies.id}) > (${after.name}, ${after.id}::uuid)`;
  return await read(
    db,
    sql`
      where ${companies.deletedAt} is null
        and ${later}
      order by coalesce(${companies.name}, ''), ${companies.id}
      limit ${limit}`,
  );
}

/** Reads one company, live or deleted. */
export async function readCompany(db: Executor, id: string): Promise<ListedCompany | undefined> {
  const [company] = await read(
    db,
    sql`
      where ${companies.id} = ${id}::uuid`,
  );
  return company;
}

async function read(db: Executor, which: SQL): Promise<ListedCompany[]> {
  const result = await db.execute<ListedCompany & Record<string, unknown>>(sql`
    with page as (
      select
        ${companies.id},
        ${companies.name},
        ${companies.externalId},
        ${companies.deletedAt}
      from ${companies}${which}
    )
    select
      page.id,
      page.name,
      page.external_id as "externalId",
      page.deleted_at::text as "deletedAt",
      waits.events as waiting,
      waits.since::text as "waitingSince",
      reads.unwell,
      reads.until::text as "readUntil",
      issues.open as issues,
      attention.connections
    from page
      cross join lateral (
        select
          coalesce(sum(${stale.events}), 0)::int as events,
          min(${stale.since}) as since
        from ${staleRecords} ${stale}
        where ${stale.queue} in ('document/' || page.id, 'connection/' || page.id)
      ) waits
      cross join lateral (
        select
          count(*) filter (where last.state <> 'complete')::int as unwell,
          case when count(last.finished_at) = count(*) then min(last.finished_at) end as until
        from unnest(${array(companyResources, 'text')}) as listing (resource)
          left join lateral (
            select
              ${part.state},
              ${part.finishedAt}
            from ${runs} ${part}
            where ${part.companyId} = page.id
              and ${part.resource} = listing.resource
              and ${part.finishedAt} is not null
            order by ${part.finishedAt} desc
            limit 1
          ) last on true
      ) reads
      cross join lateral (
        select count(*)::int as open
        from ${dataIssues}
        where ${dataIssues.companyId} = page.id
          -- With closed_at, which is null alike, Postgres may read the index of all open issues.
          and ${dataIssues.closedReason} is null
          and ${dataIssues.acknowledgedAt} is null
      ) issues
      cross join lateral (
        select count(*)::int as connections
        from ${connections}
        where ${connections.companyId} = page.id
          and ${connections.deletedAt} is null
          and metersync.customer_must_act(${connections.status})
      ) attention
    order by coalesce(page.name, ''), page.id`);
  return result.rows;
}

/** The last read of one of a company's resources: how many records its listing had, and changes without an event. */
export type ResourceRead = Pick<
  typeof runs.$inferSelect,
  'runId' | 'kind' | 'state' | 'startedAt' | 'finishedAt' | 'drift' | 'error'
> & { readonly resource: string; readonly records: number | null; readonly missed: number };

/** Reads how each of a company's resources was last read, in the order of a backfill. */
export async function readResources(db: Executor, companyId: string): Promise<ResourceRead[]> {
  const result = await db.execute<ResourceRead & Record<string, unknown>>(sql`
    select
      listing.resource,
      last.run_id as "runId",
      last.kind,
      last.state,
      last.started_at::text as "startedAt",
      last.finished_at::text as "finishedAt",
      last.distinct_ids::float8 as records,
      last.drift,
      last.rows_missed::float8 as missed,
      last.error
    from unnest(${array(companyResources, 'text')}) with ordinality as listing (resource, place)
      cross join lateral (
        select *
        from ${runs} ${part}
        where ${part.companyId} = ${companyId}::uuid
          and ${part.resource} = listing.resource
        order by ${part.finishedAt} desc
        limit 1
      ) last
    order by listing.place`);
  return result.rows;
}

/** Counts ranges of readings of a company that wait to be read. */
export async function rangesWaiting(db: Executor, companyId: string): Promise<number> {
  const result = await db.execute<{ waiting: number }>(sql`
    select coalesce(sum(waits.ranges), 0)::int as waiting
    from ${meters}
      cross join lateral (
        select count(*) as ranges
        from ${staleRecords} ${stale}
        where ${stale.queue} = 'interval/' || ${meters.id}
        offset 0
      ) waits
    where ${meters.companyId} = ${companyId}::uuid`);
  return result.rows[0]?.waiting ?? 0;
}

/** A connection of a company, and what a person has to do about it. */
export interface ListedConnection {
  readonly id: string;
  readonly provider: string | null;
  readonly status: string | null;
  readonly statusClass: string | null;
  readonly since: string | null;
  readonly whatToDo: string | null;
}

/** Lists a company's live connections, starting with those that need a person. */
export async function listConnections(
  db: Executor,
  companyId: string,
): Promise<ListedConnection[]> {
  const result = await db.execute<ListedConnection & Record<string, unknown>>(sql`
    with own as (
      select
        ${connections.id},
        ${connections.datasource} as provider,
        ${connections.status},
        analytics.status_class(${connections.status}) as status_class,
        metersync.time_of(${connections.raw} ->> 'statusFirstSeenTime') as first_seen_at
      from ${connections}
      where ${connections.companyId} = ${companyId}::uuid
        and ${connections.deletedAt} is null
      limit 200
    )
    select
      own.id,
      own.provider,
      own.status,
      own.status_class as "statusClass",
      began.since::text as since,
      case
        when metersync.needs_attention(own.status)
          then analytics.what_to_do(own.status, began.since)
      end as "whatToDo"
    from own
      cross join lateral (
        select greatest(max(${connectionStatusChanges.at}), own.first_seen_at) as since
        from ${connectionStatusChanges}
        where ${connectionStatusChanges.connectionId} = own.id
          and ${connectionStatusChanges.status} = own.status
      ) began
    order by metersync.customer_must_act(own.status) is not true, own.provider, own.id`);
  return result.rows;
}

import { sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type { Executor } from '../connection/connect.ts';
import { connections } from '../schema/utility.ts';
import { consoleBounds } from './bounds.ts';
import type { connectionsNeedingAttention as needingAttention } from './views.ts';

/** A connection that collects nothing, as analytics.connections_needing_attention says it. */
type NeedsAttention = typeof needingAttention.$inferSelect;

/** Connections that need somebody. */
export interface Attention {
  readonly connections: readonly NeedsAttention[];
  /** How many were looked at, up to `consoleBounds.connectionsMax`. */
  readonly looked: number;
}

const connection = alias(connections, 'connection');

/**
 * Lists connections that need somebody: those that stay so until a customer acts first, then the
 * oldest. It finds them by their status, and works out how far bills reach only for those it lists.
 */
export async function connectionsNeedingAttention(db: Executor, limit: number): Promise<Attention> {
  type Row = NeedsAttention & { looked: number };
  const { rows } = await db.execute<Row & Record<string, unknown>>(sql`
    with recursive statuses (status) as (
      (
        select ${connection.status}
        from ${connections} ${connection}
        where ${connection.deletedAt} is null
        order by ${connection.status}
        limit 1
      )
      union all
      select next.status
      from statuses
        cross join lateral (
          select ${connection.status}
          from ${connections} ${connection}
          where ${connection.deletedAt} is null
            and ${connection.status} > statuses.status
          order by ${connection.status}
          limit 1
        ) next
    ), candidate as materialized (
      select few.id
      from statuses
        cross join lateral (
          select ${connection.id}
          from ${connections} ${connection}
          where ${connection.deletedAt} is null
            and ${connection.status} = statuses.status
          order by ${connection.id}
          limit ${consoleBounds.connectionsMax}
        ) few
      where metersync.needs_attention(statuses.status)
      order by metersync.customer_must_act(statuses.status) desc
      limit ${consoleBounds.connectionsMax}
    ), first as materialized (
      select needing.*
      from candidate
        cross join lateral (
          select
            connection_id,
            customer_must_act,
            since
          from metersync.unwell_connections
          where connection_id = candidate.id
          offset 0
        ) needing
      order by customer_must_act desc, since nulls last, connection_id
      limit ${limit}
    )
    select
      (select count(*)::int from candidate) as looked,
      needing.connection_id as "connectionId",
      needing.company_id as "companyId",
      needing.company,
      needing.provider,
      needing.status,
      needing.since::text as since,
      needing.what_to_do as "whatToDo",
      needing.customer_must_act as "customerMustAct",
      needing.data_until::text as "dataUntil",
      needing.is_late as "isLate"
    from first
      cross join lateral (
        select *
        from analytics.connections_needing_attention
        where connection_id = first.connection_id
        offset 0
      ) needing
    order by needing.customer_must_act desc, needing.since nulls last, needing.connection_id`);
  return {
    connections: rows.map(({ looked: _looked, ...row }) => row),
    looked: rows[0]?.looked ?? 0,
  };
}

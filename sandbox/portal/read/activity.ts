import type { Pool } from 'pg';
import type { MessageStatus } from '../views/status.ts';

/** How the newest deliveries of an endpoint went. */
export interface Activity {
  readonly endpointId: string;
  readonly delivered: number;
  readonly failed: number;
  readonly open: number;
  readonly lastAt: string | null;
}

/** Deliveries that the figures look back on: a bound that keeps them fast, whatever the history. */
export const activityDeliveries = 500;

export async function readActivity(pool: Pool, endpointIds: readonly string[]): Promise<Activity[]> {
  const { rows } = await pool.query<Activity>({
    name: 'portal activity',
    text: `select p.id as "endpointId", a.* from unnest($1::text[]) p (id), lateral (
        select count(*) filter (where state = 'delivered')::integer as delivered,
          count(*) filter (where state = 'failed' or (state = 'cancelled' and attempts > 0))::integer as failed,
          count(*) filter (where state in ('waiting', 'in_flight'))::integer as open,
          (select to_char(max(t.at), 'YYYY-MM-DD"T"HH24:MI:SS.US') from sandbox.attempts t
            where t.delivery_id = any (array_agg(d.id))) as "lastAt"
        from (select id, state, attempts from sandbox.deliveries where endpoint_id = p.id order by id desc
          limit ${activityDeliveries}) d) a`,
    values: [endpointIds],
  });
  return rows;
}

export interface RecentMessage {
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly example: boolean;
  readonly status: MessageStatus;
  readonly attempts: number;
}

/** The messages of an endpoint's newest deliveries, each once. */
export async function readRecentMessages(
  pool: Pool,
  endpointId: string,
  limit: number,
  examples: boolean | null,
): Promise<RecentMessage[]> {
  const { rows } = await pool.query<RecentMessage>({
    name: 'portal recent messages',
    text: `select e.id, e.type, e.example, to_char(e.created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created,
        s.status, s.attempts
      from (select event_seq, max(id) as newest from (
          select d.event_seq, d.id from sandbox.deliveries d join sandbox.events x on x.seq = d.event_seq
          where d.endpoint_id = $1 and ($3::boolean is null or x.example = $3) order by d.id desc limit $2) l
        group by event_seq) r
      join sandbox.events e on e.seq = r.event_seq
      join lateral (select status, attempts from sandbox.message_standings
        where event_seq = r.event_seq and endpoint_id = $1) s on true
      order by r.newest desc`,
    values: [endpointId, limit, examples],
  });
  return rows;
}

import type { Pool } from 'pg';
import type { MessageStatus } from '../views/status.ts';

/** Results of an endpoint's newest deliveries. A delivery that was replaced by a later one does not count. */
export interface Activity {
  readonly endpointId: string;
  readonly delivered: number;
  readonly failed: number;
  readonly open: number;
  readonly lastAt: string | null;
}

/** How many of the newest deliveries the figures count, so that they stay fast. */
export const activityDeliveries = 500;

/** SQL condition that the message of delivery `d` was sent again, so that the later delivery counts. */
export const sentAgainLater = `exists (select from sandbox.deliveries l
              where l.event_seq = d.event_seq and l.endpoint_id = d.endpoint_id and l.id > d.id)`;

export async function readActivity(pool: Pool, endpointIds: readonly string[]): Promise<Activity[]> {
  const { rows } = await pool.query<Activity>({
    name: 'portal activity',
    text: `select p.id as "endpointId", a.* from sandbox.endpoints p, lateral (
        select count(*) filter (where state = 'delivered')::integer as delivered,
          count(*) filter (where state = 'failed' or (state = 'cancelled' and attempts > 0
            and not ${sentAgainLater}))::integer as failed,
          count(*) filter (where state in ('waiting', 'in_flight'))::integer as open,
          (select to_char(max(t.at), 'YYYY-MM-DD"T"HH24:MI:SS.US') from sandbox.attempts t
            where t.delivery_id = any (array_agg(d.id))) as "lastAt"
        from (select id, event_seq, endpoint_id, state, attempts from sandbox.deliveries
          where endpoint_id = p.id and id > p.deliveries_after order by id desc
          limit ${activityDeliveries}) d) a
      where p.id = any ($1::text[])`,
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

const columns = `e.id, e.type, e.example, to_char(e.created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created,
  s.status, s.attempts`;
/** Without the limit, Postgres would compute the standings of all messages and join them. */
const standing = `lateral (select status, attempts from sandbox.message_standings
  where event_seq = e.seq and endpoint_id = $1 limit 1) s`;

/** The messages of an endpoint's newest deliveries, each once. */
export async function readRecentMessages(
  pool: Pool,
  endpointId: string,
  limit: number,
): Promise<RecentMessage[]> {
  const { rows } = await pool.query<RecentMessage>({
    name: 'portal recent messages',
    text: `select ${columns} from (select event_seq, max(id) as newest from (
          select event_seq, id from sandbox.deliveries where endpoint_id = $1
            and id > (select deliveries_after from sandbox.endpoints where id = $1) order by id desc limit $2) l
        group by event_seq) r
      join sandbox.events e on e.seq = r.event_seq, ${standing}
      order by r.newest desc`,
    values: [endpointId, limit],
  });
  return rows;
}

/** The newest examples that were sent to an endpoint. */
export async function readRecentExamples(
  pool: Pool,
  endpointId: string,
  limit: number,
): Promise<RecentMessage[]> {
  const { rows } = await pool.query<RecentMessage>({
    name: 'portal recent examples',
    text: `select ${columns} from sandbox.events e, ${standing} where e.example
      and e.organization_id = (select organization_id from sandbox.endpoints where id = $1)
      order by e.seq desc limit $2`,
    values: [endpointId, limit],
  });
  return rows;
}

import type { Pool } from 'pg';
import type { MessageStatus } from '../views/status.ts';

/** Which messages are asked for. What is null does not narrow the list. */
export interface MessageFilter {
  readonly type: string | null;
  readonly status: MessageStatus | null;
  /** Statuses are those with this endpoint, and messages that it did not choose are left out. */
  readonly endpointId: string | null;
  readonly from: string | null;
  readonly until: string | null;
}

export interface ListedMessage {
  readonly seq: string;
  readonly id: string;
  readonly type: string;
  readonly created: string;
  readonly example: boolean;
  readonly status: MessageStatus;
  readonly endpoints: number;
}

export const messagesPerPage = 50;

/**
 * Messages of an organization, the newest first, from before number `before`. The status over several endpoints is
 * the one that needs attention most. One more than a page is read, to tell whether there is another.
 */
export async function readMessages(
  pool: Pool,
  organizationId: string,
  filter: MessageFilter,
  before: string | null,
): Promise<ListedMessage[]> {
  const { rows } = await pool.query<ListedMessage>({
    name: 'portal messages',
    text: `select e.seq::text as seq, e.id, e.type, e.example, s.status, s.endpoints,
        to_char(e.created, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created
      from sandbox.events e, lateral (
        select count(*)::integer as endpoints, case
          when bool_or(m.status = 'failed') then 'failed' when bool_or(m.status = 'retrying') then 'retrying'
          when bool_or(m.status = 'pending') then 'pending' when bool_or(m.status = 'delivered') then 'delivered'
          else 'missing' end as status
        from sandbox.message_standings m join sandbox.endpoints p on p.id = m.endpoint_id
        where m.event_seq = e.seq and (p.id = $4 or ($4 is null and p.state <> 'removed'))) s
      where e.organization_id = $1 and ($2::text is null or e.type = $2) and ($3::text is null or s.status = $3)
        and ($5::timestamp is null or e.created >= $5) and ($6::timestamp is null or e.created < $6)
        and ($7::bigint is null or e.seq < $7)
        and ($4::text is null or s.endpoints > 0 or (not e.example and exists (select from sandbox.endpoints q
          where q.id = $4 and (q.event_types = '{}' or e.type = any (q.event_types)))))
      order by e.seq desc limit $8`,
    values: [
      organizationId,
      filter.type,
      filter.status,
      filter.endpointId,
      filter.from,
      filter.until,
      before,
      messagesPerPage + 1,
    ],
  });
  return rows;
}
